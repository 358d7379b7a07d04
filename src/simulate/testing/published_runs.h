// Runs of the published experiment beside what was published. Without NEAP_TRACES they skip.
#pragma once

#include <cstdint>
#include <string>

#include "simulate/openb/experiment.h"
#include "simulate/openb/policy.h"
#include "simulate/testing/published.h"

namespace neap::simulate {

// Expects the published curves of all policies for the seeds from first to last.
void expect_published(const std::string& trace, std::int64_t first, std::int64_t last);

// Percent that a policy leaves unallocated.
struct Unallocated {
  double at_100 = 0;  // when as much has arrived as the cluster holds
  double at_130 = 0;
};

struct OwnRuns {
  std::string trace;
  Ties ties = Ties::fixed;
  std::int64_t last = 46;  // of the seeds from 42
  Knowledge knowledge = Knowledge::given;
};

// By neap's own policy, the mean of the seeds.
[[nodiscard]] Unallocated mean_unallocated(const Published& published, const OwnRuns& runs);

}  // namespace neap::simulate
