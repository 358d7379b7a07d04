// Roles of devices: training leaves the guard, and what the stage of adoption no longer gives it.
#include <algorithm>
#include <set>

#include "core/decider.h"
#include "core/rules/adoption.h"
#include "core/rules/guard.h"
#include "core/rules/preempt.h"
#include "core/rules/preempt_outlook.h"

namespace neap {

void Decider::spread_roles() {
  Roles roles = assign_roles(state_);
  const Roles before = current_roles(state_);
  if (roles == before) return;
  emit(RolesAssigned{std::move(roles.guard), std::move(roles.buffer), std::move(roles.lane)});
  for (const DeviceId device : before.guard) withdraw_from(device);
}

// Training on a guard device is asked to leave, by its cheapest mode.
void Decider::clear_guard() {
  const Time needed_by = now_ + state_.spec.preempt.guard_reclaim;
  bool some_stay = false;
  for (std::size_t i = 0; i < state_.devices.size(); ++i) {
    if (state_.devices[i].role != Role::guard) continue;
    const auto tenants = state_.devices[i].tenants;
    for (const Tenant& tenant : tenants) {
      const TaskState& task = state_.tasks.at(tenant.task);
      if (task.purpose == Purpose::inference) continue;
      if (task.phase == Phase::starting) some_stay = true;
      if (task.phase != Phase::running) continue;
      const auto offer = cheapest_offer(state_, task, now_, needed_by);
      if (!offer || offer->mode == ReleaseMode::finish) {
        some_stay = true;
        continue;
      }
      if (offer->mode == ReleaseMode::kill) {
        emit(KillAsked{task.id, task.allocation, StopReason::guard_restored});
        continue;
      }
      emit(YieldAsked{task.id, task.allocation, offer->mode, offer->release_by,
                      StopReason::guard_restored});
    }
  }
  if (some_stay) emit(PreemptRetryScheduled{ShapeId::none(), now_ + preempt_retry});
}

// Training that the stage of adoption no longer has where it is leaves at a boundary; nobody is
// killed for it, and who cannot be asked stays to its end.
void Decider::clear_adoption() {
  if (state_.adoption.stage == AdoptionStage::time) return;
  const PreemptSpec& preempt = state_.spec.preempt;
  std::set<TaskId> out;
  for (const DeviceState& device : state_.devices) {
    for (const Tenant& tenant : device.tenants) {
      if (is_out_of_stage(state_, state_.tasks.at(tenant.task))) out.insert(tenant.task);
    }
  }
  for (const TaskId id : out) {
    const TaskState& task = state_.tasks.at(id);
    if (task.phase != Phase::running) continue;
    const Micros interval = std::max(task.spec.contract.interval, preempt.checkpoint_interval);
    const auto offer = offer_by(outlook_of(state_, task, now_), now_ + interval * 2 + preempt.grace,
                                Killing::never);
    if (!offer || offer->mode == ReleaseMode::finish) continue;
    emit(YieldAsked{id, task.allocation, offer->mode, offer->release_by, StopReason::adoption});
  }
  if (!out.empty()) emit(PreemptRetryScheduled{ShapeId::none(), now_ + preempt_retry});
}

// The guard found another device: training that was to leave this one may stay.
void Decider::withdraw_from(DeviceId device) {
  if (state_.device(device).role == Role::guard) return;
  const auto tenants = state_.device(device).tenants;
  for (const Tenant& tenant : tenants) {
    const TaskState& task = state_.tasks.at(tenant.task);
    const bool leaves_for_guard =
        task.phase == Phase::yielding && task.stop_reason == StopReason::guard_restored;
    const bool on_guard = std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
      return state_.device(slot.device).role == Role::guard;
    });
    const bool claimed = state_.index->plans_of_victim.contains(task.id);
    if (leaves_for_guard && !on_guard && !claimed) {
      emit(YieldWithdrawn{task.id, task.allocation});
    }
  }
}

}  // namespace neap
