// Who waits with a start that is promised, who is to be forced, and who has a deadline to keep.
#include "core/model/pool_index.h"

namespace neap {

namespace {
WaitKey wait_key(const TaskState& task) {
  const bool issued = task.bound == BoundCode::issued;
  return {static_cast<std::uint8_t>(issued ? 0 : 1), task.forced_at, task.id};
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
  const bool to_judge = waits && task.bound == BoundCode::none && task.purpose == Purpose::batch &&
                        !task.service.valid() && state.spec.fairness.lane > 0;
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
