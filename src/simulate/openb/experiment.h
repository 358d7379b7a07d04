// One run of the published experiment from files to a report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "simulate/openb/policy.h"
#include "simulate/openb/protocol.h"
#include "simulate/openb/workload.h"
#include "trace/openb.h"

namespace neap::simulate {

// What neap's own policy knows of the pods: how often each kind comes, or nothing until it comes.
enum class Knowledge : std::uint8_t { given, online };

struct Experiment {
  std::string nodes;  // files
  std::string pods;
  std::string order;  // empty: an order drawn from the seed
  std::int64_t seed = 42;
  std::string policy = "neap";
  Ties ties = Ties::fixed;
  Knowledge knowledge = Knowledge::given;  // for neap's own policy
};

// The names of the policies.
[[nodiscard]] const std::vector<std::string>& policy_names();

// Null for a name that is none. With knowledge given, neap's own policy learns its table here, from
// the workload's pods and not from an order.
[[nodiscard]] std::unique_ptr<Policy> make_policy(const std::string& name, const Workload& workload,
                                                  const Cluster& cluster, PolicyOptions options,
                                                  Knowledge knowledge = Knowledge::given);

// Every pod once in random order, then pods drawn at random, until 130 % of the cluster is asked
// for; nodes in random order. Not the published order of that seed.
[[nodiscard]] trace::OpenbOrder draw_order(const Workload& workload, std::int64_t seed);

[[nodiscard]] Result<Outcome> run_experiment(const Experiment& experiment);
// One JSON object, on one line.
[[nodiscard]] std::string json_of(const Experiment& experiment, const Outcome& outcome);

}  // namespace neap::simulate
