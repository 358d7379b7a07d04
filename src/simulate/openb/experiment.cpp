#include "simulate/openb/experiment.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/leftover/online.h"

namespace neap::simulate {

namespace {

Result<trace::OpenbOrder> order_of(const Experiment& experiment, const Workload& workload) {
  if (experiment.order.empty()) return draw_order(workload, experiment.seed);
  auto bytes = trace::open_bytes(experiment.order);
  if (!bytes) return tl::unexpected(bytes.error());
  return trace::read_openb_order(std::move(*bytes), experiment.seed,
                                 {static_cast<std::uint32_t>(workload.pods.size()),
                                  static_cast<std::uint32_t>(workload.nodes.size())});
}

std::string hundredths(std::int32_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%s%d.%02d", value < 0 ? "-" : "", std::abs(value) / 100,
                std::abs(value) % 100);
  return text;
}

std::string list_of(const Curve& curve) {
  std::string text = "[";
  for (const std::int32_t value : curve.values) {
    if (text.size() > 1) text += ',';
    text += hundredths(value);
  }
  return text + "]";
}

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = {"random",  "dotprod", "clustering", "packing",
                                                 "bestfit", "fgd",     "neap"};
  return names;
}

std::unique_ptr<Policy> make_policy(const std::string& name, const Workload& workload,
                                    const Cluster& cluster, PolicyOptions options,
                                    Knowledge knowledge) {
  if (name != "neap") return make_reference_policy(name, workload, cluster, options);
  if (knowledge == Knowledge::online) {
    return std::make_unique<OnlinePolicy>(Course::filling, workload, options);
  }
  return std::make_unique<NeapPolicy>(learn_leftover(workload), Situation{Course::filling},
                                      workload, cluster, options);
}

trace::OpenbOrder draw_order(const Workload& workload, std::int64_t seed) {
  trace::Chance chance(static_cast<std::uint64_t>(seed));
  trace::OpenbOrder order;
  order.seed = seed;
  order.nodes.resize(workload.nodes.size());
  std::iota(order.nodes.begin(), order.nodes.end(), 0U);
  chance.shuffle(order.nodes);
  std::vector<std::uint32_t> once(workload.pods.size());
  std::iota(once.begin(), once.end(), 0U);
  chance.shuffle(once);
  const std::int64_t target = workload.capacity() * 13 / 10;
  // Pods that ask for no device bring no end nearer: they cannot go on for ever.
  const std::size_t most = once.size() * 1000;
  std::int64_t asked = 0;
  while (order.pods.size() < most) {
    const std::size_t n = order.pods.size();
    const std::uint32_t row =
        n < once.size() ? once[n] : static_cast<std::uint32_t>(chance.below(once.size()));
    asked += workload.pods[row].demand.milli();
    if (asked > target) break;
    order.pods.push_back(row);
  }
  return order;
}

Result<Outcome> run_experiment(const Experiment& experiment) {
  const auto& names = policy_names();
  if (std::find(names.begin(), names.end(), experiment.policy) == names.end()) {
    return fail(ErrorCode::invalid_argument, "no policy is called " + experiment.policy,
                "--policy");
  }
  const auto workload = read_workload(experiment.nodes, experiment.pods);
  if (!workload) return tl::unexpected(workload.error());
  const auto order = order_of(experiment, *workload);
  if (!order) return tl::unexpected(order.error());
  Cluster cluster = workload->cluster(order->nodes);
  const auto policy = make_policy(experiment.policy, *workload, cluster,
                                  {static_cast<std::uint64_t>(experiment.seed), experiment.ties},
                                  experiment.knowledge);
  return run_protocol(*workload, order->pods, cluster, *policy);
}

std::string json_of(const Experiment& experiment, const Outcome& outcome) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.6f", outcome.seconds);
  return "{\"policy\":\"" + experiment.policy + "\",\"seed\":" + std::to_string(experiment.seed) +
         ",\"ties\":\"" + (experiment.ties == Ties::fixed ? "fixed" : "random") +
         "\",\"alloc_pct\":" + list_of(outcome.allocated) +
         ",\"frag_pct\":" + list_of(outcome.fragmented) +
         ",\"unallocated_at_100\":" + hundredths(outcome.unallocated_at(100)) +
         ",\"unallocated_at_130\":" + hundredths(outcome.unallocated_at(130)) +
         ",\"refused_though_feasible\":" + std::to_string(outcome.refused_though_feasible) +
         ",\"seconds\":" + seconds +
         ",\"decision_ns\":{\"p50\":" + std::to_string(outcome.decision.p50) +
         ",\"p99\":" + std::to_string(outcome.decision.p99) +
         ",\"max\":" + std::to_string(outcome.decision.max) + "}" +
         (experiment.policy != "neap"                 ? ""
          : experiment.knowledge == Knowledge::online ? ",\"learn\":\"online\""
                                                      : ",\"learn\":\"given\"") +
         "}";
}

}  // namespace neap::simulate
