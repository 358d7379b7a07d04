// What is due when: timers of tasks, plans and looks, derived from the state.
#include <algorithm>

#include "core/model/pool_index.h"

namespace neap {

namespace {

std::uint64_t timer_slot(TimerKind kind, std::uint32_t id) {
  return (static_cast<std::uint64_t>(kind) << 32) | id;
}

}  // namespace

void set_timer(PoolState& state, TimerKind kind, std::uint32_t id, Time at) {
  auto& index = *state.index;
  const std::uint64_t slot = timer_slot(kind, id);
  const auto found = index.timer_of.find(slot);
  if (found != index.timer_of.end()) {
    if (found->second == at) return;
    index.timers.erase({found->second, kind, id});
    if (at == Time::never()) {
      index.timer_of.erase(found);
      return;
    }
    found->second = at;
  } else {
    if (at == Time::never()) return;
    index.timer_of.emplace(slot, at);
  }
  index.timers.emplace(at, kind, id);
}

void refresh_timer(PoolState& state, const TaskState& task) {
  if (task.phase == Phase::yielding || task.phase == Phase::stopping) {
    state.index->leaving.insert(task.id);
  } else {
    state.index->leaving.erase(task.id);
  }
  if (task.phase == Phase::running && task.spec.request.least > 0) {
    state.index->ranged.insert(task.id);
  } else {
    state.index->ranged.erase(task.id);
  }
  Time at = Time::never();
  switch (task.phase) {
    case Phase::waiting:
      if (task.not_before > state.now) at = task.not_before;
      break;
    case Phase::starting:
      if (task.service.valid()) {
        at = task.placed_at + state.service(task.service).spec.start_timeout;
      }
      break;
    case Phase::running:
      at = task.checkpoint_due;
      if (task.service.valid() && !task.ready) {
        at = task.placed_at + state.service(task.service).spec.start_timeout;
      }
      break;
    case Phase::yielding:
      at = task.yield_by + state.spec.preempt.grace;
      break;
    case Phase::stopping:
      at = task.kill_at;
      break;
    default:
      break;
  }
  set_timer(state, TimerKind::task, task.id.value, at);
}

void refresh_plan_timer(PoolState& state, const Plan& plan) {
  const bool waits_for_an_end =
      plan.kind == PlanKind::preemption &&
      std::any_of(plan.victims.begin(), plan.victims.end(),
                  [](const Victim& victim) { return victim.mode == ReleaseMode::finish; });
  set_timer(state, TimerKind::plan, plan.task.value,
            waits_for_an_end ? plan.needed_by : Time::never());
}

namespace {
Time look_at(const PoolState& state, Look look) {
  switch (look) {
    case Look::room:
      return state.room_look_at;
    case Look::consolidation:
      return state.consolidation_look_at;
    case Look::growth:
      return state.growth_look_at;
    case Look::lane:
      return state.lane_look_at;
    case Look::deadlines:
      break;
  }
  return state.deadlines_look_at;
}
}  // namespace

void refresh_look(PoolState& state, Look look) {
  const Time at = look_at(state, look);
  set_timer(state, TimerKind::look, static_cast<std::uint32_t>(look),
            at > state.now ? at : Time::never());
}

void refresh_tide_timer(PoolState& state) {
  const bool counts = state.spec.tide.derive && state.tide.begun;
  set_timer(state, TimerKind::tide, 0,
            counts ? state.tide.slot_begin + state.spec.tide.slot : Time::never());
}

void refresh_drill_timer(PoolState& state) {
  const DrillState& drill = state.drill;
  Time at = Time::never();
  if (drill.phase == DrillPhase::settling) at = drill.settle_by;
  if (drill.phase == DrillPhase::demand) {
    at = drill.until;
    for (const DrillReplica& replica : drill.placed) {
      if (replica.ready == Time::never()) {
        at = std::min(at, replica.asked + drill.limits.ready_within);
      }
    }
    if (drill.pausing) at = std::min(at, drill.paused_at + drill.limits.pause);
    if (drill.paused_at == Time::never()) at = std::min(at, drill.pause_at);
  }
  set_timer(state, TimerKind::drill, 0, at > state.now ? at : Time::never());
}

Time next_start(const PoolState& state) {
  const bool free = state.spec.starts.apart == Micros(0) || state.last_start == Time::never();
  return free ? Time(0) : state.last_start + state.spec.starts.apart;
}

void refresh_start_timers(PoolState& state) {
  for (const TaskId id : state.index->loading) {
    set_timer(state, TimerKind::loading, id.value,
              state.tasks.at(id).placed_at + state.spec.starts.loading);
  }
  const Time next = next_start(state);
  set_timer(state, TimerKind::starts, 0, next > state.now ? next : Time::never());
}

void note_plan(PoolState& state, const Plan& plan) {
  if (plan.kind == PlanKind::reservation) state.index->reserved.insert(plan.task);
  if (plan.kind == PlanKind::move || plan.kind == PlanKind::resize) {
    state.index->moving.insert(plan.task);
  }
  refresh_plan_timer(state, plan);
}

void forget_plan(PoolState& state, const Plan& plan) {
  state.index->reserved.erase(plan.task);
  state.index->moving.erase(plan.task);
  state.index->agenda.plans.erase(plan.task);
  set_timer(state, TimerKind::plan, plan.task.value, Time::never());
}

}  // namespace neap
