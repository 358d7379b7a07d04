// Steps of decide() for tasks that run with a range of devices: placed with fewer where all are not
// to be had, shrunk before others are preempted, grown where nobody waits. docs/decisions/0018.
#include <algorithm>

#include "core/decider.h"
#include "core/rules/place.h"
#include "core/rules/resize.h"
#include "core/rules/teams.h"

namespace neap {

namespace {
// At who could have more devices.
Micros look_again_after(const ResizeSpec& spec) {
  return std::clamp(spec.dwell, seconds(1), minutes(5));
}
}  // namespace

// With all devices, or with as many as are to be had; within the limits of its team.
Placement Decider::place_some(const Shape& shape) const {
  Placement all{{}, WaitCode::team_limit};
  if (!limit_in_the_way(state_, shape.team, milli_of(shape.request))) all = place(state_, shape);
  for (const std::int32_t n : fewer_devices(shape.request)) {
    if (!all.slots.empty()) break;
    const Shape some = with_devices(shape, n);
    if (limit_in_the_way(state_, shape.team, milli_of(some.request))) continue;
    Placement found = place(state_, some);
    if (!found.slots.empty() || all.why == WaitCode::team_limit) all = std::move(found);
  }
  return all;
}

// Before anybody is preempted for it: others go on with fewer devices.
bool Decider::shrink_for(const TaskState& task, Time needed_by) {
  if (!state_.spec.resize.enabled || state_.index->ranged.empty()) return false;
  const Shape& shape = state_.shape(task.shape);
  std::vector<std::int32_t> counts = fewer_devices(shape.request);
  counts.insert(counts.begin(), shape.request.count);
  std::optional<Shrinks> found;
  for (const std::int32_t n : counts) {
    const Shape some = with_devices(shape, n);
    if (limit_in_the_way(state_, shape.team, milli_of(some.request))) continue;
    found = find_shrinks(state_, some, now_, needed_by);
    if (found) break;
  }
  if (!found) return false;
  const TaskId id = task.id;
  std::vector<Victim> victims;
  for (const Shrink& one : found->tasks) {
    victims.push_back({one.task, one.offer.mode, one.offer.release_by, one.offer.cost});
  }
  std::sort(victims.begin(), victims.end(),
            [](const Victim& a, const Victim& b) { return a.task < b.task; });
  emit(PreemptionPlanned{id, std::move(found->slots), std::move(victims), needed_by, found->cost});
  for (Shrink& one : found->tasks) resize(one.task, std::move(one.kept), one.offer, id);
  return true;
}

void Decider::resize(TaskId id, std::vector<Slot> slots, const Offer& offer, TaskId for_task) {
  emit(MovePlanned{id, std::move(slots), for_task, offer.release_by});
  emit(YieldAsked{id, state_.tasks.at(id).allocation, offer.mode, offer.release_by,
                  StopReason::resized});
}

// Devices that nobody waits for go to those who run with fewer than they ask for.
void Decider::grow() {
  const PoolIndex& index = *state_.index;
  stop_growing();
  if (index.ranged.empty() || !state_.spec.resize.enabled || !state_.spec.preempt.enabled ||
      state_.pause.active || now_ < state_.growth_look_at) {
    return;
  }
  Time next = Time::never();
  const std::vector<TaskId> ranged(index.ranged.begin(), index.ranged.end());
  for (const TaskId id : ranged) {
    const TaskState& task = state_.tasks.at(id);
    if (task.slots.size() >= static_cast<std::size_t>(task.spec.request.count)) continue;
    const Time due = task.started_at + state_.spec.resize.dwell;
    next = std::min(next, due > now_ ? due : now_ + look_again_after(state_.spec.resize));
    if (due > now_ || task.phase != Phase::running || others_wait_for(state_, task)) continue;
    if (auto growth = find_growth(state_, task, now_)) {
      resize(id, std::move(growth->slots), growth->offer, TaskId::none());
    }
  }
  if (next != Time::never()) emit(LookScheduled{Look::growth, next});
}

// Who has not yielded yet stays as it is: others have come who could use the devices, or who was to
// have some of them needs none any more.
void Decider::stop_growing() {
  const std::vector<TaskId> moving(state_.index->moving.begin(), state_.index->moving.end());
  for (const TaskId id : moving) {
    const TaskState& task = state_.tasks.at(id);
    const Plan& plan = state_.plans.at(id);
    if (plan.kind != PlanKind::resize || task.phase != Phase::yielding) continue;
    if (plan.for_task.valid()) {
      if (!state_.plans.contains(plan.for_task)) drop_plan_of(id, "nobody needs its devices now");
    } else if (others_wait_for(state_, task)) {
      drop_plan_of(id, "others wait for devices");
    }
  }
}

}  // namespace neap
