#include "core/apply_parts.h"
#include "core/model/team_index.h"
#include "core/rules/admit.h"

namespace neap {

namespace {

// Out of the queue of its old shape, before it gets the new one.
void leave_queue(PoolState& state, const TaskState& task) {
  auto& index = *state.index;
  auto& queue = index.waiting[task.shape.value];
  const QueueKey key = queue_key(task);
  if (queue.erase(key) == 0) return;
  index.waiters.erase({task.tier, key});
  if (queue.empty()) index.waiting_shapes.erase(task.shape.value);
}

}  // namespace

void adopt_teams(PoolState& state) {
  std::vector<TaskId> live;
  state.tasks.for_each([&](const TaskState& task) {
    if (!has_ended(task.phase) && task.shape.valid()) live.push_back(task.id);
  });
  for (const TaskId id : live) {
    TaskState& task = state.tasks.at(id);
    const ShapeId before = task.shape;
    const ShapeId after = intern_shape(state, shape_of(state.spec, task));
    if (after == before) continue;
    leave_queue(state, task);
    task.shape = after;
    if (state.wait_codes[after.value] == WaitCode::none) {
      state.wait_codes[after.value] = state.wait_codes[before.value];
    }
    refresh_queue(state, task);
  }
  rebuild_teams(state);
}

}  // namespace neap
