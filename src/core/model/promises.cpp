// Who waits with a start that is promised, who is to be forced, and who has a deadline to keep.
#include "core/model/pool_index.h"

namespace neap {

namespace {
WaitKey wait_key(const TaskState& task) {
  const bool fits_lane = task.bound == BoundCode::infeasible || task.bound == BoundCode::requeued;
  std::uint8_t rank = task.lane == LaneUse::borrows && fits_lane ? 1 : 2;
  if (task.bound == BoundCode::issued) rank = 0;
  return {rank, task.forced_at, task.id};
}
}  // namespace

void forget_promise(PoolState& state, const TaskState& task) {
  state.index->promised.erase(wait_key(task));
}

void refresh_promise(PoolState& state, const TaskState& task) {
  PoolIndex& index = *state.index;
  const bool waits = task.phase == Phase::waiting && !task.awaits_stages;
  if (waits && task.forced_at != Time::never()) {
    index.promised.insert(wait_key(task));
  } else {
    index.promised.erase(wait_key(task));
  }
  if (waits && task.bound == BoundCode::infeasible) {
    index.infeasible.insert(task.id);
  } else {
    index.infeasible.erase(task.id);
  }
  const bool to_judge = waits && task.bound == BoundCode::none &&
                        task.purpose != Purpose::inference && state.spec.fairness.lane > 0;
  if (to_judge) {
    index.agenda.bounds.insert(task.id);
  } else {
    index.agenda.bounds.erase(task.id);
  }
  if (waits && task.deadline == DeadlineVerdict::accepted) {
    if (index.near_deadline.insert(task.id).second) index.agenda.deadlines = true;
  } else {
    index.near_deadline.erase(task.id);
  }
}

}  // namespace neap
