#include "core/rules/starts.h"

#include <algorithm>

#include "core/model/pool_index.h"

namespace neap {

namespace {

bool all_load(const PoolState& state) {
  const std::int32_t at_once = state.spec.starts.at_once;
  return at_once > 0 && state.index->loading.size() >= static_cast<std::size_t>(at_once);
}

}  // namespace

bool is_held_back(const PoolState& state, const TaskState& task) {
  if (task.purpose == Purpose::inference) return false;
  return all_load(state) || state.now < next_start(state);
}

Time next_turn(const PoolState& state) {
  if (!all_load(state)) return next_start(state);
  Time first = Time::never();
  for (const TaskId id : state.index->loading) {
    first = std::min(first, state.tasks.at(id).placed_at + state.spec.starts.loading);
  }
  return std::max(first, next_start(state));
}

std::string held_back_text(const PoolState& state) {
  if (all_load(state)) {
    const std::size_t loading = state.index->loading.size();
    return std::to_string(loading) + (loading == 1 ? " task loads its" : " tasks load their") +
           " data now, and " + std::to_string(state.spec.starts.at_once) +
           " may at once (starts.at_once)";
  }
  const std::int64_t left = std::max<std::int64_t>(0, (next_start(state) - state.now).value);
  return "another task began a moment ago: the next one may in " +
         std::to_string((left + 999'999) / 1'000'000) + " s (starts.apart)";
}

void mark_held_back(PoolState& state) {
  auto& index = *state.index;
  for (auto s = index.waiting_shapes.first(); s; s = index.waiting_shapes.at_or_after(*s + 1)) {
    if (state.wait_codes[*s] == WaitCode::starts) index.agenda.shapes.insert(*s);
  }
  for (const auto& [task, plan] : state.plans) {
    const bool may_start = plan.victims.empty() || plan.kind == PlanKind::move;
    if (may_start) index.agenda.plans.insert(task);
  }
}

void begin_loading(PoolState& state, TaskState& task) {
  if (task.purpose == Purpose::inference) return;
  state.last_start = state.now;
  task.loading = state.spec.starts.at_once > 0;
  if (task.loading) state.index->loading.insert(task.id);
  refresh_start_timers(state);
}

void end_loading(PoolState& state, TaskState& task) {
  if (!task.loading) return;
  task.loading = false;
  state.index->loading.erase(task.id);
  set_timer(state, TimerKind::loading, task.id.value, Time::never());
  mark_held_back(state);
}

}  // namespace neap
