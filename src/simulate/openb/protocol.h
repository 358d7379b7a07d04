// The published experiment: pods arrive one by one, none departs, none is tried twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simulate/openb/fragmentation.h"
#include "simulate/openb/policy.h"
#include "simulate/openb/workload.h"
#include "trace/openb.h"

namespace neap::simulate {

// Arrived devices in percent of the cluster's, rounded to whole: the bins of a curve.
inline constexpr std::size_t bins = 131;

struct Curve {
  // Means over the records of a bin, in hundredths of a percent; a bin without records has the
  // value of the one before.
  std::array<std::int32_t, bins> values{};
};

struct DecisionTimes {
  std::int64_t p50 = 0;  // ns
  std::int64_t p99 = 0;
  std::int64_t max = 0;
};

struct Outcome {
  Curve allocated;                           // percent of the cluster
  Curve fragmented;                          // percent of the cluster
  std::int64_t refused_though_feasible = 0;  // a pod that fitted somewhere: must be 0
  double seconds = 0;
  DecisionTimes decision;

  // Hundredths of a percent.
  [[nodiscard]] std::int32_t unallocated_at(std::size_t bin) const {
    return 10'000 - allocated.values[bin];
  }
};

// Places the pods in their order on the cluster, whose nodes stand in the order of the run.
[[nodiscard]] Outcome run_protocol(const Workload& workload, const std::vector<std::uint32_t>& pods,
                                   Cluster& cluster, Policy& policy);

}  // namespace neap::simulate
