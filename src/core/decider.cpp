#include "core/decider.h"

#include <algorithm>
#include <optional>

#include "core/model/check.h"
#include "core/rules/admit.h"
#include "core/rules/adoption.h"
#include "core/rules/chain.h"
#include "core/rules/guard.h"
#include "core/rules/leaving.h"
#include "core/rules/order.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/resize.h"
#include "core/rules/roll.h"
#include "core/rules/scale.h"
#include "core/rules/starts.h"
#include "core/rules/teams.h"
#include "core/rules/tide.h"

namespace neap {

void Decider::emit(Decision decision) {
  apply(state_, now_, decision);
  append_actions(state_, decision, result_.actions);
  if (result_.note) result_.note(state_, nullptr, &decision);
  result_.decisions.push_back(std::move(decision));
}

// ---- 1 ---------------------------------------------------------------------------------------

void Decider::admit_submitted() {
  auto& submitted = state_.index->agenda.admit;
  while (!submitted.empty()) {
    const TaskId id = *submitted.begin();
    submitted.erase(submitted.begin());
    const Admission result = admit(state_, state_.tasks.at(id));
    if (result.admitted) {
      emit(TaskAdmitted{id, result.dedicated, result.releasable, result.lane, result.deadline});
    } else {
      emit(TaskRefused{id, result.condition, result.detail});
    }
  }
}

// ---- 2 ---------------------------------------------------------------------------------------

void Decider::watch_devices() {
  auto& changed = state_.index->agenda.devices;
  while (!changed.empty()) {
    const DeviceId id = *changed.begin();
    changed.erase(changed.begin());
    const DeviceState& device = state_.device(id);
    const bool crowded = device.foreign.value * all_ppm.value >
                         device.memory.value * state_.spec.prefilter.out_above.value;
    if (!device.excluded && crowded) emit(DeviceExcluded{id, device.foreign});
    if (device.health == DeviceHealth::healthy) continue;
    const auto tenants = device.tenants;
    for (const Tenant& tenant : tenants) {
      const TaskState& task = state_.tasks.at(tenant.task);
      if (task.phase != Phase::stopping) stop(task, StopReason::device_failed);
    }
  }
}

// ---- 3 ---------------------------------------------------------------------------------------

void Decider::keep_deadlines() {
  auto& index = *state_.index;
  while (!index.agenda.attention.empty()) {
    const TaskId id = *index.agenda.attention.begin();
    index.agenda.attention.erase(index.agenda.attention.begin());
    if (const TaskState* task = state_.tasks.find(id)) attend(*task);
  }
  for (int kept = 0; kept < deadlines_per_decide; ++kept) {
    if (index.timers.empty() || std::get<Time>(*index.timers.begin()) > now_) break;
    const auto [at, kind, id] = *index.timers.begin();
    switch (kind) {
      case TimerKind::task:
        keep_task_deadline(state_.tasks.at(TaskId(id)));
        break;
      case TimerKind::shape:
        set_timer(state_, TimerKind::shape, id, Time::never());
        if (index.waiting_shapes.contains(id)) index.agenda.shapes.insert(id);
        break;
      case TimerKind::device:
        emit(DeviceReadmitted{DeviceId(id)});
        break;
      case TimerKind::plan:
        drop_plan_of(TaskId(id), "a task did not end when it was expected to");
        break;
      case TimerKind::guard:
        set_timer(state_, TimerKind::guard, id, Time::never());
        index.agenda.guard = true;
        index.agenda.adoption = true;
        break;
      case TimerKind::loading:
        emit(LoadingEnded{TaskId(id)});
        break;
      case TimerKind::starts:
        set_timer(state_, TimerKind::starts, id, Time::never());
        mark_held_back(state_);
        break;
      case TimerKind::look:
      case TimerKind::tide:
      case TimerKind::drill:
        set_timer(state_, kind, id, Time::never());
        break;
    }
  }
}

// Somebody asked for it to stop, it is unhealthy, or the checkpoint it was to yield at is there.
void Decider::attend(const TaskState& task) {
  if (!holds_devices(task.phase) || task.phase == Phase::stopping) return;
  if (task.stop_reason == StopReason::cancelled) {
    stop(task, StopReason::cancelled);
  } else if (task.stop_reason == StopReason::unhealthy ||
             task.stop_reason == StopReason::device_failed) {
    stop(task, task.stop_reason);
  } else if (task.phase == Phase::yielding && state_.pause.active) {
    emit(YieldWithdrawn{task.id, task.allocation});
  } else if (task.phase == Phase::yielding && task.yield_mode == ReleaseMode::boundary &&
             !task.spec.contract.sdk && task.captured > task.started_at) {
    // A watched directory: the pool sees the boundary, the task must be told to stop there.
    stop(task, task.stop_reason);
  }
}

void Decider::keep_task_deadline(const TaskState& task) {
  const PreemptSpec& preempt = state_.spec.preempt;
  switch (task.phase) {
    case Phase::waiting:
      emit(BackoffEnded{task.id});
      return;
    case Phase::starting:
      stop(task, StopReason::unhealthy);
      return;
    case Phase::yielding:  // it had its grace
      stop(task, StopReason::contract_breach);
      return;
    case Phase::stopping:
      emit(KillAsked{task.id, task.allocation, task.stop_reason});
      return;
    case Phase::running:
      if (task.service.valid()) {
        stop(task, StopReason::unhealthy);
      } else if (task.missed >= preempt.missed_checkpoints) {
        stop(task, StopReason::admission_revoked);
      } else {
        emit(CheckpointAsked{task.id, task.allocation, task.missed + 1});
      }
      return;
    default:
      break;
  }
  NEAP_CHECK(false);  // ended tasks have no timer
}

void Decider::stop(const TaskState& task, StopReason reason) {
  Micros grace = state_.spec.preempt.term_grace;
  if (task.service.valid()) {
    grace += state_.service(task.service).spec.drain_timeout;
  } else if (reason == StopReason::cancelled) {
    grace = state_.spec.preempt.grace;
  }
  emit(StopAsked{task.id, task.allocation, reason, now_ + grace});
}

// ---- 4 ---------------------------------------------------------------------------------------

void Decider::keep_guard() {
  count_demand();
  auto& agenda = state_.index->agenda;
  if (agenda.roles) {
    agenda.roles = false;
    const bool large = state_.devices.size() > spread_anew_up_to;
    if (!large || !roles_are_full(state_)) spread_roles();
  }
  if (agenda.adoption && !state_.pause.active) {
    agenda.adoption = false;
    clear_adoption();
  }
  if (!agenda.guard || state_.pause.active) return;
  agenda.guard = false;
  if (state_.index->training_on_guard > 0) clear_guard();
}

// Closes the slots of the day curve that have passed: the first with what was seen in it.
void Decider::count_demand() {
  const TideSpec& tide = state_.spec.tide;
  if (!tide.derive) return;
  if (!state_.tide.begun) {
    emit(DemandCounted{});
    return;
  }
  const std::int64_t passed = (now_ - state_.tide.slot_begin).value / tide.slot.value;
  if (passed < 1) return;
  if (passed > slots_counted_at_once) {  // too long ago to learn from
    emit(DemandCounted{});
    return;
  }
  std::vector<std::optional<std::int64_t>> demands;
  for (const ServiceState& service : state_.services) {
    if (!service.removed) demands.push_back(service.slot_peak);
  }
  emit(DemandCounted{lead_time::sum_of(demands), passed});
}

// ---- 6 ---------------------------------------------------------------------------------------

void Decider::scale_services() {
  auto& services = state_.index->agenda.services;
  while (const auto id = services.first()) {
    services.erase(*id);
    scale_service(ServiceId(*id));
  }
}

void Decider::scale_service(ServiceId id) {
  const ServiceState& service = state_.service(id);
  if (service.roll && !service.removed) {
    const bool by_load = is_untried(service);
    if (roll_service(id) == Rolling::ended || !by_load) return;
  }
  const ScaleStep change = scale_step(state_, service, now_);
  for (std::int32_t i = 0; i < change.add; ++i) {
    emit(ReplicaAdded{id, state_.tasks.next_id(), change.why, change.cause});
  }
  for (const TaskId replica : change.remove) {
    const TaskState& task = state_.tasks.at(replica);
    if (task.phase == Phase::waiting) {
      drop_plan_of(replica, change.why);
      emit(ReplicaDropped{id, replica, change.why});
    } else {
      stop(task, change.reason);
    }
  }
}

void Decider::start(const TaskState& task, std::vector<Slot> slots) {
  emit(TaskPlaced{task.id, AllocationId(state_.next_allocation), std::move(slots)});
}

// ---- 9 ---------------------------------------------------------------------------------------

namespace {
std::optional<Head> head_of(const PoolState& state, ShapeId shape) {
  const auto& queue = state.index->waiting[shape.value];
  if (queue.empty()) return std::nullopt;
  const QueueKey first = *queue.begin();
  return Head{turn_in_chain(state, state.tasks.at(first.task)), first, shape};
}
}  // namespace

void Decider::place_waiting() {
  auto& shapes = state_.index->agenda.shapes;
  HeadOrder heads(state_);
  for (auto s = shapes.first(); s; s = shapes.at_or_after(*s + 1)) {
    if (const auto head = head_of(state_, ShapeId(*s))) heads.add(*head);
  }
  for (auto s = shapes.first(); s; s = shapes.first()) shapes.erase(*s);
  int searches = 0;
  for (int tried = 0; !heads.empty() && tried < placements_per_decide; ++tried) {
    const Head head = heads.take();
    const TaskState& task = state_.tasks.at(head.key.task);
    if (is_over_limit(task)) {
      set_wait_code(head.shape, WaitCode::team_limit);
      continue;
    }
    Placement placement = place_some(state_.shape(head.shape));
    const bool held = is_held_back(state_, task);
    if (placement.slots.empty() && !held && give_room_to(task)) {
      placement = place_some(state_.shape(head.shape));
    }
    if (!placement.slots.empty() && held) {
      set_wait_code(head.shape, WaitCode::starts);
      continue;
    }
    if (!placement.slots.empty()) {
      start(task, std::move(placement.slots));
    } else if (lend_room_to(task)) {
      // It has started.
    } else if (const Preempting tried_to = try_preempt(task, searches);
               tried_to != Preempting::planned) {
      // One failed search speaks for all of this shape.
      set_wait_code(head.shape, tried_to == Preempting::paused ? WaitCode::paused : placement.why);
      lend_room_behind(head.shape);
      continue;
    }
    if (const auto next = head_of(state_, head.shape)) heads.add(*next);
  }
  for (const ShapeId shape : heads.left()) shapes.insert(shape.value);
}

// It waits, and others pass it: a team at its limit holds nobody else up.
bool Decider::is_over_limit(const TaskState& task) const {
  const Shape least = with_least(state_.shape(task.shape));
  return limit_in_the_way(state_, least.team, milli_of(least.request)).has_value();
}

void Decider::set_wait_code(ShapeId shape, WaitCode code) {
  if (state_.wait_codes[shape.value] != code) emit(WaitReasonChanged{shape, code});
}

// ---- 11 ---------------------------------------------------------------------------------------

void Decider::report_conditions() {
  const auto wanted = pool_conditions(state_);
  std::vector<std::string> over;
  for (const auto& [name, detail] : state_.conditions) {
    if (!wanted.contains(name)) over.push_back(name);
  }
  for (const std::string& name : over) emit(ConditionChanged{name, false, {}});
  for (const auto& [name, detail] : wanted) {
    const auto known = state_.conditions.find(name);
    if (known == state_.conditions.end() || known->second != detail) {
      emit(ConditionChanged{name, true, detail});
    }
  }
}

// ---- actions ---------------------------------------------------------------------------------

namespace {

StartTask start_action(const PoolState& state, const TaskState& task) {
  StartTask start;
  start.allocation = task.allocation;
  start.task = task.id;
  start.service = task.service;
  start.name = task.spec.name;
  start.launch = task.spec.launch;
  start.owner = task.spec.owner;
  start.contract = task.spec.contract;
  start.slots = task.slots;
  for (const Slot& slot : task.slots) start.devices.push_back(state.device(slot.device).uuid);
  start.node = state.node(state.device(task.slots.front().device).node).name;
  start.restore_from = task.checkpoint_path;
  start.artifacts = task.spec.artifacts;
  return start;
}

struct ActionMaker {
  const PoolState& state;
  std::vector<Action>& out;

  void operator()(const TaskPlaced& d) const {
    out.emplace_back(start_action(state, state.tasks.at(d.task)));
  }
  void operator()(const YieldAsked& d) const {
    // At a boundary that only the pool sees, the task is stopped when it comes (attend()).
    const ContractSpec& contract = state.tasks.at(d.task).spec.contract;
    if (d.mode == ReleaseMode::boundary && !contract.sdk) return;
    out.emplace_back(AskYield{d.allocation, d.mode, d.release_by});
  }
  void operator()(const YieldWithdrawn& d) const { out.emplace_back(WithdrawYield{d.allocation}); }
  void operator()(const CheckpointAsked& d) const { out.emplace_back(AskCheckpoint{d.allocation}); }
  void operator()(const StopAsked& d) const { out.emplace_back(StopTask{d.allocation, d.kill_at}); }
  void operator()(const KillAsked& d) const { out.emplace_back(KillTask{d.allocation}); }
  template <class Other>
  void operator()(const Other& /*needs no action*/) const {}
};

}  // namespace

void append_actions(const PoolState& state, const Decision& decision, std::vector<Action>& out) {
  std::visit(ActionMaker{state, out}, decision);
}

std::vector<Action> pending_actions(const PoolState& state) {
  std::vector<Action> out;
  const ActionMaker make{state, out};
  state.tasks.for_each([&](const TaskState& task) {
    if (task.phase == Phase::starting) {
      out.emplace_back(start_action(state, task));
    } else if (holds_devices(task.phase)) {
      const DeviceState& device = state.device(task.slots.front().device);
      out.emplace_back(AdoptTask{task.allocation, state.node(device.node).name});
    }
    if (task.phase == Phase::yielding) {
      make(YieldAsked{task.id, task.allocation, task.yield_mode, task.yield_by, task.stop_reason});
    }
    if (task.phase == Phase::stopping) {
      make(StopAsked{task.id, task.allocation, task.stop_reason, task.kill_at});
    }
  });
  return out;
}

}  // namespace neap
