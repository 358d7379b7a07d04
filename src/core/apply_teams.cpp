#include "core/apply_parts.h"
#include "core/model/team_index.h"
#include "core/rules/admit.h"

namespace neap {

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
