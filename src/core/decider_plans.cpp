// Plans: those whose devices are free by now start, those that nobody needs any more are dropped.
#include <algorithm>

#include "core/decider.h"
#include "core/model/host.h"
#include "core/rules/adoption.h"
#include "core/rules/drill.h"
#include "core/rules/place.h"
#include "core/rules/starts.h"

namespace neap {

// ---- 7 ---------------------------------------------------------------------------------------

void Decider::settle_plans() {
  auto& plans = state_.index->agenda.plans;
  while (!plans.empty()) {
    const TaskId id = *plans.begin();
    plans.erase(plans.begin());
    if (state_.plans.contains(id)) settle_plan(id);
  }
}

namespace {
// Memory that processes outside the pool took since the plan was made is not there for it.
bool fits_still(const PoolState& state, const Plan& plan, const Slot& slot) {
  MiB leaving{0};
  MiB held = slot.memory;
  for (const Victim& victim : plan.victims) {
    for (const Slot& has : state.tasks.at(victim.task).slots) {
      if (has.device != slot.device) continue;
      leaving += has.memory;
      if (counts_for(state, plan, victim)) held -= has.memory;
    }
  }
  held = std::max(MiB(0), held);
  return free_memory(state, state.device(slot.device)) + held + leaving >= slot.memory;
}
}  // namespace

bool Decider::has_lost_a_device(const Plan& plan) const {
  const std::uint8_t roles = allowed_roles(state_, state_.shape(state_.tasks.at(plan.task).shape));
  return std::any_of(plan.slots.begin(), plan.slots.end(), [&](const Slot& slot) {
    const DeviceState& device = state_.device(slot.device);
    return !is_usable(state_, device) || !fits_still(state_, plan, slot) ||
           (roles & role_bit(device.role)) == 0 ||
           (state_.adoption.stage == AdoptionStage::physical && slot.share < whole_device);
  });
}

void Decider::settle_plan(TaskId id) {
  const Plan& plan = state_.plans.at(id);
  const TaskState& task = state_.tasks.at(id);
  if (has_lost_a_device(plan)) {
    drop_plan_of(id, "a claimed device is no longer usable");
  } else if (!hosts_cover(state_, plan)) {
    drop_plan_of(id, "a node has less CPU or memory than was claimed of it");
  } else if (plan.kind == PlanKind::move || plan.kind == PlanKind::resize) {
    settle_move(plan);
  } else if (plan.victims.empty() && is_held_back(state_, task)) {
    // Its devices stay claimed until it may start.
  } else if (plan.victims.empty()) {
    room_was_given_ = room_was_given_ || plan.kind == PlanKind::reservation;
    start(task, plan.slots);
  } else if (state_.pause.active) {
    drop_plan_of(id, "the pool is paused");
  } else if (plan.kind == PlanKind::preemption &&
             !may_claim_back(state_, state_.shape(task.shape))) {
    drop_plan_of(id, "nothing is lent in this stage of adoption");
  } else {
    Placement elsewhere = place(state_, state_.shape(task.shape));
    if (elsewhere.slots.empty() || is_held_back(state_, task)) {
      if (plan.kind == PlanKind::reservation) reclaim_loans(id);
      return;
    }
    drop_plan_of(id, "room was found elsewhere");
    start(task, std::move(elsewhere.slots));
  }
}

// Yields whose need has gone are withdrawn, unless the task is being stopped already.
void Decider::drop_plan_of(TaskId id, const std::string& why) {
  const auto found = state_.plans.find(id);
  if (found == state_.plans.end()) return;
  const std::vector<Victim> victims = found->second.victims;
  const bool moves = found->second.kind == PlanKind::move || found->second.kind == PlanKind::resize;
  room_was_given_ = room_was_given_ || found->second.kind == PlanKind::reservation;
  emit(PreemptionDropped{id, why});
  if (moves) {
    const TaskState& task = state_.tasks.at(id);
    const bool may_stay =
        task.phase == Phase::yielding &&
        (task.stop_reason == StopReason::moved || task.stop_reason == StopReason::resized);
    if (may_stay) emit(YieldWithdrawn{task.id, task.allocation});
    return;
  }
  for (const Victim& victim : victims) {
    const TaskState& task = state_.tasks.at(victim.task);
    const auto move = state_.plans.find(task.id);
    if (move != state_.plans.end() && move->second.for_task == id &&
        task.phase == Phase::yielding) {
      drop_plan_of(task.id, "room is no longer needed there");
      continue;
    }
    const bool still_needed = state_.index->plans_of_victim.contains(task.id) ||
                              task.stop_reason != StopReason::preempted;
    if (task.phase == Phase::yielding && !still_needed) {
      emit(YieldWithdrawn{task.id, task.allocation});
    }
  }
}

void Decider::settle_move(const Plan& plan) {
  const TaskState& task = state_.tasks.at(plan.task);
  const bool has_left = task.phase == Phase::waiting;
  if (has_left && task.not_before > now_) {
    drop_plan_of(plan.task, "it starts again later");
  } else if (has_left && is_held_back(state_, task)) {
    return;
  } else if (has_left) {
    start(task, plan.slots);
  } else if (task.phase == Phase::running) {
    drop_plan_of(plan.task, "it may stay");
  } else if (task.phase == Phase::yielding && state_.pause.active) {
    drop_plan_of(plan.task, "the pool is paused");
  }
}

// ---- 10 --------------------------------------------------------------------------------------

void Decider::rehearse() {
  while (auto next = drill_step(state_, now_)) emit(std::move(*next));
}

}  // namespace neap
