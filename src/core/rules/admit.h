// Admission to the shared pool (SPEC A4, A5): interruptible, predictable, and of bounded
// sensitivity to delay. A task that fails goes to the dedicated partition, or is refused with the
// failed condition named.
#pragma once

#include <string>

#include "core/model/state.h"

namespace neap {

struct Admission {
  bool admitted = false;
  bool dedicated = false;
  bool releasable = false;  // can be placed on lendable devices
  LaneUse lane = LaneUse::none;
  DeadlineVerdict deadline = DeadlineVerdict::none;
  std::string condition;  // the one that failed: "interruptible", "predictable", "delay_tolerance",
                          // "baseline"
  std::string detail;
};
[[nodiscard]] Admission admit(const PoolState& state, const TaskState& task);

[[nodiscard]] Shape shape_of(const PoolSpec& pool, const TaskState& task);

// A request that no device of the pool, or not all of them together, could ever carry.
[[nodiscard]] Result<void> check_request(const PoolState& state, const Request& request);

}  // namespace neap
