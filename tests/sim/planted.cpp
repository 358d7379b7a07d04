#include "tests/sim/planted.h"

#include <optional>
#include <utility>
#include <variant>

#include "core/decider.h"
#include "core/model/pool_index.h"
#include "core/rules/place.h"

namespace neap::sim {

namespace {

// A bug that decides something on top of what the real engine decides.
using Extra = std::function<std::optional<Decision>(const PoolState&, Time)>;

Step with_extra(Extra extra) {
  return [extra = std::move(extra)](PoolState& state, Time now, const Event& event,
                                    StepResult& result) {
    step(state, now, event, result);
    if (std::optional<Decision> decision = extra(state, now)) {
      apply(state, now, *decision);
      append_actions(state, *decision, result.actions);
      result.decisions.push_back(std::move(*decision));
    }
  };
}

const TaskState* first_task(const PoolState& state,
                            const std::function<bool(const TaskState&)>& accepts) {
  const TaskState* found = nullptr;
  state.tasks.for_each([&](const TaskState& task) {
    if (found == nullptr && accepts(task)) found = &task;
  });
  return found;
}

bool waits_for_one_whole_device(const PoolState& state, const TaskState& task) {
  return task.phase == Phase::waiting && task.shape.valid() && !task.dedicated &&
         !state.plans.contains(task.id) && task.purpose != Purpose::inference &&
         task.spec.request.count == 1 && task.spec.request.share == whole_device &&
         task.spec.request.models.empty();
}

std::optional<Decision> ignore_guard(const PoolState& state, Time /*now*/) {
  const TaskState* task =
      first_task(state, [&](const TaskState& t) { return waits_for_one_whole_device(state, t); });
  if (task == nullptr) return std::nullopt;
  for (std::uint32_t d = 0; d < state.devices.size(); ++d) {
    const DeviceState& device = state.devices[d];
    if (device.role != Role::guard || !is_usable(state, device) || !device.tenants.empty() ||
        free_share(device) < whole_device || device.foreign.value > 0) {
      continue;
    }
    return TaskPlaced{task->id,
                      AllocationId(state.next_allocation),
                      {Slot{DeviceId(d), whole_device, free_memory(state, device)}}};
  }
  return std::nullopt;
}

std::optional<Decision> assign_twice(const PoolState& state, Time /*now*/) {
  const TaskState* task =
      first_task(state, [&](const TaskState& t) { return waits_for_one_whole_device(state, t); });
  const TaskState* holder = first_task(state, [&](const TaskState& t) {
    return t.phase == Phase::running && t.spec.request.count == 1 && !t.dedicated &&
           t.purpose != Purpose::inference && t.spec.request.share == whole_device &&
           is_usable(state, state.device(t.slots.front().device));
  });
  if (task == nullptr || holder == nullptr) return std::nullopt;
  return TaskPlaced{task->id, AllocationId(state.next_allocation), holder->slots};
}

std::optional<Decision> forget_reason(const PoolState& state, Time /*now*/) {
  const TaskState* task = first_task(state, [&](const TaskState& t) {
    return t.phase == Phase::waiting && t.shape.valid() && !state.plans.contains(t.id) &&
           t.not_before <= state.now && state.wait_codes[t.shape.value] != WaitCode::none;
  });
  if (task == nullptr) return std::nullopt;
  return WaitReasonChanged{task->shape, WaitCode::none};
}

std::optional<Decision> evict(const PoolState& state, Time now,
                              const std::function<bool(const TaskState&)>& wrongly) {
  if (state.pause.active) return std::nullopt;
  const TaskState* victim = first_task(state, [&](const TaskState& t) {
    return t.phase == Phase::running && t.purpose != Purpose::inference && t.spec.contract.sdk &&
           wrongly(t);
  });
  if (victim == nullptr) return std::nullopt;
  return YieldAsked{victim->id, victim->allocation, ReleaseMode::boundary, now + minutes(10),
                    StopReason::preempted};
}

std::optional<Decision> evict_nearly_done(const PoolState& state, Time now) {
  return evict(state, now, [&](const TaskState& t) {
    const auto work = remaining_work(t, now);
    return work && *work <= t.spec.contract.restore && t.seen_restore.value == 0;
  });
}

std::optional<Decision> evict_protected(const PoolState& state, Time now) {
  return evict(state, now, [&](const TaskState& t) {
    const auto work = remaining_work(t, now);
    const bool on_buffer = state.device(t.slots.front().device).role == Role::buffer;
    return !on_buffer && t.spec.request.count == 1 && (!work || *work > hours(1)) &&
           now - t.started_at < state.spec.preempt.protect_min;
  });
}

std::optional<Decision> refuse_admitted(const PoolState& state, Time now) {
  const TaskState* task = first_task(state, [&](const TaskState& t) {
    return waits_for_one_whole_device(state, t) && now - t.submitted > minutes(20);
  });
  if (task == nullptr) return std::nullopt;
  return TaskRefused{task->id, "patience", "it waited too long"};
}

std::optional<Decision> kill_for_capacity(const PoolState& state, Time now) {
  if (state.plans.empty()) return std::nullopt;
  const Plan& plan = state.plans.begin()->second;
  if (plan.victims.empty() || now - plan.made < minutes(1)) return std::nullopt;
  const TaskState& victim = state.tasks.at(plan.victims.front().task);
  if (victim.phase != Phase::yielding) return std::nullopt;
  return KillAsked{victim.id, victim.allocation, StopReason::preempted};
}

// One that runs is moved, as others may be, and nobody has claimed a place for it.
std::optional<Decision> move_to_nowhere(const PoolState& state, Time now) {
  const TaskState* task = first_task(state, [&](const TaskState& t) {
    const auto work = remaining_work(t, now);
    return t.phase == Phase::running && t.purpose == Purpose::batch && t.spec.contract.sdk &&
           (!work || *work > hours(1)) && now - t.started_at > hours(1);
  });
  if (task == nullptr || state.pause.active) return std::nullopt;
  return YieldAsked{task->id, task->allocation, ReleaseMode::boundary, now + minutes(10),
                    StopReason::moved};
}

// What others hold, and will go on holding, is claimed for one that is to be moved.
std::optional<Decision> move_onto_others(const PoolState& state, Time now) {
  const auto is_old = [&](const TaskState& t) {
    return t.phase == Phase::running && t.purpose == Purpose::batch && t.slots.size() == 1 &&
           t.spec.request.share == whole_device && !state.plans.contains(t.id) &&
           now - t.started_at > minutes(30);
  };
  const TaskState* task = first_task(state, is_old);
  if (task == nullptr || state.pause.active) return std::nullopt;
  const TaskState* other =
      first_task(state, [&](const TaskState& t) { return is_old(t) && t.id != task->id; });
  if (other == nullptr) return std::nullopt;
  return MovePlanned{task->id, other->slots, TaskId::none(), now + minutes(10)};
}

// Room that is kept for another goes to one that has no time at which it leaves.
std::optional<Decision> lend_for_good(const PoolState& state, Time now) {
  const TaskState* task = first_task(state, [&](const TaskState& t) {
    return waits_for_one_whole_device(state, t) && !t.releasable && !remaining_work(t, now);
  });
  if (task == nullptr || state.pause.active) return std::nullopt;
  for (const auto& [owner, plan] : state.plans) {
    if (plan.kind != PlanKind::reservation) continue;
    for (const Slot& slot : plan.slots) {
      const DeviceState& device = state.device(slot.device);
      if (!device.tenants.empty() || device.role != Role::core || !is_usable(state, device))
        continue;
      const MiB memory = free_memory(state, device) + device.held_memory;
      return TaskPlaced{.task = task->id,
                        .allocation = AllocationId(state.next_allocation),
                        .slots = {{slot.device, whole_device, memory}},
                        .lender = owner,
                        .leaves_by = plan.needed_by};
    }
  }
  return std::nullopt;
}

// Not a decision at all: the state changes beside the record.
void change_unrecorded(PoolState& state, Time now, const Event& event, StepResult& result) {
  step(state, now, event, result);
  TaskState* found = nullptr;
  state.tasks.for_each([&](const TaskState& task) {
    if (task.phase == Phase::running) found = state.tasks.find(task.id);
  });
  if (found != nullptr) ++found->preemptions_today;
}

void place_nobody(PoolState& state, Time now, const Event& event, StepResult& result) {
  // Waiting tasks are not looked at again after the first hour.
  if (now > Time(0) + hours(1)) {
    auto& shapes = state.index->agenda.shapes;
    for (auto s = shapes.first(); s; s = shapes.first()) shapes.erase(*s);
  }
  apply(state, now, event);
  if (now > Time(0) + hours(1)) {
    auto& shapes = state.index->agenda.shapes;
    for (auto s = shapes.first(); s; s = shapes.first()) shapes.erase(*s);
  }
  decide(state, now, result);
}

// Capacity is given back when a task says that it yields, not when it is gone.
Event take_word_for_exit(Event event) {
  if (const auto* said = std::get_if<YieldAcknowledged>(&event)) {
    return TaskExited{.stamp = said->stamp, .code = 75};
  }
  return event;
}

}  // namespace

std::vector<NamedBug> planted_bugs() {
  return {
      {"IgnoresTheGuard", "is placed on the guard", {.step = with_extra(ignore_guard)}},
      {"AssignsTwice", "whose memory is taken", {.step = with_extra(assign_twice)}},
      {"ForgetsAReason", "waits without a reason", {.step = with_extra(forget_reason)}},
      {"EvictsNearlyDone", "is to yield with W <= R", {.step = with_extra(evict_nearly_done)}},
      {"EvictsProtected",
       "is to yield in its protected window",
       {.step = with_extra(evict_protected)}},
      {"DropsAdmittedTask",
       "is refused after it was admitted",
       {.step = with_extra(refuse_admitted)}},
      {"KillsForCapacity",
       "is killed before it was asked to stop",
       {.step = with_extra(kill_for_capacity)}},
      {"MovesToNowhere",
       "is moved and has no place to go to",
       {.step = with_extra(move_to_nowhere)}},
      {"ClaimsWhatOthersHold", "claimed or held for good", {.step = with_extra(move_onto_others)}},
      {"LendsForGood", "is lent room that it does not leave", {.step = with_extra(lend_for_good)}},
      {"ChangesUnrecorded",
       "the state is another one than what its records make of it",
       {.step = change_unrecorded}},
      {"FreesAtYield", "its capacity is counted as free", {.rewrite = take_word_for_exit}},
      {"LooksAwayFromWaiters", "there is room for it", {.step = place_nobody}},
      {"ActsBeforeDurable",
       "its capacity is counted as free",
       {.loop = LoopBug::acts_before_durable}},
      {"AcknowledgesBeforeDurable",
       "does not come to rest",
       {.loop = LoopBug::acknowledges_before_durable}},
  };
}

}  // namespace neap::sim
