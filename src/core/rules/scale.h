// How many replicas a service has (SPEC D5, S13): one more above the upper threshold for its time,
// one less below the lower one, always within its bounds. Unknown load changes nothing.
#pragma once

#include <vector>

#include "core/model/state.h"

namespace neap {

struct ScaleStep {
  std::int32_t add = 0;
  std::vector<TaskId> remove;
  const char* why = "";
  ReplicaCause cause = ReplicaCause::demand;    // of those added
  StopReason reason = StopReason::scaled_down;  // of those that hold devices and leave
};
[[nodiscard]] ScaleStep scale_step(const PoolState& state, const ServiceState& service, Time now);

// On its way out.
[[nodiscard]] bool leaves(const TaskState& task);
// Which `count` of these replicas go first: one that still waits, one that does not serve yet, then
// one on devices that training could use.
[[nodiscard]] std::vector<TaskId> first_to_leave(const PoolState& state,
                                                 const std::vector<const TaskState*>& staying,
                                                 std::size_t count);
// Replicas that are not on their way out.
[[nodiscard]] std::int32_t staying_replicas(const PoolState& state, const ServiceState& service);
// The task that one more replica of this service is.
[[nodiscard]] TaskSpec replica_spec(const ServiceState& service);
// Pause before the next start, growing with starts that failed in a row.
[[nodiscard]] Micros replica_backoff(const ServiceState& service);
// A replica of a service whose last starts all failed, as many as a task may have: it starts where
// there is room, and nobody is asked to yield for one more.
[[nodiscard]] bool fails_to_start(const PoolState& state, const TaskState& task);

}  // namespace neap
