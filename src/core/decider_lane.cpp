// Steps of decide() by which nobody starves: starts are promised, who has waited as long as its
// tier allows goes before all others, and the lane is left by its borrowers. docs/decisions/0016.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/decider.h"
#include "core/model/pool_index.h"
#include "core/rules/deadline.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/promise.h"

namespace neap {

namespace {

bool is_on_lane(const PoolState& state, const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    return state.device(slot.device).role == Role::lane;
  });
}

constexpr std::uint8_t last_rank = 2;
constexpr Micros promotion_retry = minutes(1);  // while its team has as many as it may

// Who may still be forced, of each rank the first.
Time next_forced(const PoolState& state) {
  const auto& promised = state.index->promised;
  Time next = Time::never();
  for (std::uint8_t rank = 0; rank <= last_rank; ++rank) {
    const auto at = promised.lower_bound({rank, state.now + microseconds(1), TaskId(0)});
    if (at != promised.end() && at->rank == rank) next = std::min(next, at->forced_at);
  }
  return next;
}

// Of one shape, who is forced and would have to start first. Those who were preempted often are due
// before they are forced: few of them are looked at.
std::optional<WaitKey> forced_of(const PoolState& state, ShapeId shape) {
  constexpr int most = 64;
  int looked = 0;
  for (const QueueKey& key : state.index->waiting[shape.value]) {
    const TaskState& task = state.tasks.at(key.task);
    if (task.forced) return WaitKey{0, task.forced_at, task.id};
    if (++looked == most) break;
  }
  return std::nullopt;
}

}  // namespace

// ---- 9, 10 -----------------------------------------------------------------------------------

void Decider::keep_accepted_deadlines() {
  PoolIndex& index = *state_.index;
  const auto tier = deadline_tier(state_);
  if (!tier || (!index.agenda.deadlines && now_ < state_.deadlines_look_at)) return;
  index.agenda.deadlines = false;
  Time next = Time::never();
  const std::vector<TaskId> waiting(index.near_deadline.begin(), index.near_deadline.end());
  for (const TaskId id : waiting) next = std::min(next, keep_deadline_of(id, *tier));
  if (next != state_.deadlines_look_at) emit(LookScheduled{Look::deadlines, next});
}

// The time at which to look at it again.
Time Decider::keep_deadline_of(TaskId id, TierId tier) {
  const TaskState& task = state_.tasks.at(id);
  if (!task.shape.valid()) return Time::never();
  const TierId own = own_tier(state_, task);
  const bool possible = can_keep_deadline(state_, task);
  if (task.tier != own) {
    if (possible) return latest_start(state_, task) + microseconds(1);
    emit(TierChanged{id, own, "its deadline cannot be kept any more"});
    return Time::never();
  }
  const bool lighter = state_.tier(own).weight < state_.tier(tier).weight;
  if (!possible || !lighter || task.purpose != Purpose::batch) return Time::never();
  const Time near = near_deadline_at(state_, task);
  if (near > now_) return near;
  if (!may_be_promoted(state_, task)) return now_ + promotion_retry;
  emit(TierChanged{id, tier, "its deadline is near"});
  return latest_start(state_, task) + microseconds(1);
}

void Decider::keep_lane() {
  const PoolIndex& index = *state_.index;
  if (index.lane.empty() && index.promised.empty() && index.agenda.bounds.empty()) return;
  const bool due = now_ >= state_.lane_look_at;
  if (judge_promises() || due) force_due();
  const bool in_lane = start_in_order();
  start_elsewhere();
  Time next = next_forced(state_);
  if (in_lane || due || lane_is_wanted(state_)) {
    next = std::min(next, clear_lane());
  } else {
    next = std::min(next, state_.lane_look_at);
  }
  if (next != state_.lane_look_at) emit(LookScheduled{Look::lane, next});
}

bool Decider::judge_promises() {
  auto& waiting = state_.index->agenda.bounds;
  const bool any = !waiting.empty();
  while (!waiting.empty()) {
    const TaskId id = *waiting.begin();
    waiting.erase(waiting.begin());
    const Promise promise = promise_for(state_, state_.tasks.at(id));
    emit(StartBoundSet{id, promise.code, promise.forced_at, promise.start_by, promise.ahead});
  }
  return any;
}

void Decider::force_due() {
  const auto& promised = state_.index->promised;
  std::vector<TaskId> due;
  for (std::uint8_t rank = 0; rank <= last_rank; ++rank) {
    for (auto at = promised.lower_bound({rank, Time(0), TaskId(0)});
         at != promised.end() && at->rank == rank && at->forced_at <= now_; ++at) {
      if (!state_.tasks.at(at->task).forced) due.push_back(at->task);
    }
  }
  for (const TaskId id : due) emit(TaskForced{id});
}

// In the lane one after the other: nobody goes there past the first that finds no room.
bool Decider::start_in_order() {
  const auto& promised = state_.index->promised;
  bool started = false;
  for (auto at = promised.begin(); at != promised.end() && at->rank < last_rank;) {
    if (at->forced_at > now_) {  // of this rank nobody else is forced
      at = promised.lower_bound({static_cast<std::uint8_t>(at->rank + 1), Time(0), TaskId(0)});
      continue;
    }
    const WaitKey waiting = *at;
    const TaskState& task = state_.tasks.at(waiting.task);
    if (task.not_before <= now_ && !is_over_limit(task)) {
      const LaneStart tried = start_in_lane(task);
      if (tried == LaneStart::blocked) break;
      started = started || tried == LaneStart::started;
    }
    at = promised.upper_bound(waiting);
  }
  return started;
}

// Where there is room outside the lane, before all who are not forced.
void Decider::start_elsewhere() {
  const auto& changed = state_.index->agenda.shapes;
  if (changed.empty() || state_.index->promised.empty()) return;
  std::set<std::pair<WaitKey, ShapeId>> heads;
  for (auto s = changed.first(); s; s = changed.at_or_after(*s + 1)) {
    if (const auto head = forced_of(state_, ShapeId(*s))) heads.emplace(*head, ShapeId(*s));
  }
  for (int tried = 0; !heads.empty() && tried < placements_per_decide; ++tried) {
    const auto [key, shape] = *heads.begin();
    heads.erase(heads.begin());
    const TaskState& task = state_.tasks.at(key.task);
    if (is_over_limit(task)) continue;
    std::vector<Slot> slots = place_if_room(state_, state_.shape(shape));
    if (slots.empty()) continue;  // one failed search speaks for all of this shape
    start(task, std::move(slots));
    if (const auto next = forced_of(state_, shape)) heads.emplace(*next, shape);
  }
}

Decider::LaneStart Decider::start_in_lane(const TaskState& task) {
  const Shape& shape = state_.shape(task.shape);
  std::vector<Slot> slots = place_in_lane(state_, shape);
  if (!slots.empty()) {
    drop_plan_of(task.id, "it starts in the lane");
    start(task, std::move(slots));
    return LaneStart::started;
  }
  if (fit_in_lane(state_, lane_nodes(state_), shape).fits) return LaneStart::blocked;
  // The lane is smaller than it was: what was promised cannot be kept, and others are not held up.
  emit(StartBoundSet{task.id, BoundCode::too_large, task.forced_at});
  return LaneStart::impossible;
}

// Who is in the lane without right is asked to leave it. The time at which to look again.
Time Decider::clear_lane() {
  Time next = Time::never();
  if (state_.pause.active || !state_.spec.preempt.enabled) return next;
  const auto& promised = state_.index->promised;
  const bool wanted = lane_is_wanted(state_);
  const bool for_promise =
      wanted && promised.begin()->rank == 0 && promised.begin()->forced_at <= now_;
  const std::uint8_t first = for_promise ? 0 : 1;
  if (wanted) drop_plans_on_lane();
  for (const TaskId id : lane_tenants(state_)) {
    const TaskState& task = state_.tasks.at(id);
    const bool slow = task.lane != LaneUse::borrows;
    // Interactive training leaves for inference alone; others were there before the lane was.
    if (task.purpose != Purpose::batch || (slow && task.lane_until == Time(0))) continue;
    if (!wanted && !slow) continue;
    const bool has_its_stay = task.bound == BoundCode::issued || !for_promise;
    const Time stays = has_its_stay ? task.lane_until : Time(0);
    if (stays > now_) {
      next = std::min(next, stays);
      continue;
    }
    Time from = std::max(stays, state_.pause.since);
    if (!slow) from = std::max(from, promised.lower_bound({first, Time(0), TaskId(0)})->forced_at);
    const bool borrows = stays == Time(0);
    const Micros leave = lane_leave(state_.spec, task.spec);
    next = std::min(next,
                    ask_to_leave_lane(task, from + (borrows ? lane_within(state_.spec) : leave)));
  }
  return next;
}

// What is claimed of the lane would be taken from whoever is forced.
void Decider::drop_plans_on_lane() {
  std::vector<TaskId> claims;
  for (const auto& [id, plan] : state_.plans) {
    if (is_on_lane(state_, plan.slots)) claims.push_back(id);
  }
  for (const TaskId id : claims) drop_plan_of(id, "a forced task is to start there");
}

Time Decider::ask_to_leave_lane(const TaskState& task, Time by) {
  const PreemptSpec& preempt = state_.spec.preempt;
  const Micros leave = lane_leave(state_.spec, task.spec);
  if (task.phase == Phase::starting) {  // it has nothing to lose yet
    if (now_ < by - leave) return by - leave;
    stop(task, StopReason::preempted);
    return Time::never();
  }
  if (task.phase == Phase::yielding && task.yield_by > by) {
    if (now_ < by + preempt.grace) return by + preempt.grace;
    stop(task, StopReason::contract_breach);
    return Time::never();
  }
  if (task.phase != Phase::running) return Time::never();
  // Whoever runs for longer than it declared has had its time to leave.
  const bool overran = task.spec.work.has_value() && !remaining_work(task, now_).has_value();
  if (!overran) by = std::max(by, now_ + leave);
  const auto offer = cheapest_offer(state_, task, now_, by);
  // Who is nearly done ends by itself; if it does not, it is asked then.
  if (offer && offer->mode == ReleaseMode::finish) return offer->release_by + microseconds(1);
  const bool in_time = offer && offer->mode != ReleaseMode::kill;
  ReleaseMode mode =
      saves_on_demand(task.spec.contract) ? ReleaseMode::on_demand : ReleaseMode::boundary;
  if (in_time) mode = offer->mode;
  emit(YieldAsked{task.id, task.allocation, mode, in_time ? offer->release_by : by,
                  StopReason::preempted});
  return Time::never();
}

}  // namespace neap
