// Steps of decide() that make room: for a task that others pass, and at low tide for whoever
// comes. docs/decisions/0011.
#include <algorithm>

#include "core/decider.h"
#include "core/rules/chain.h"
#include "core/rules/defragment.h"
#include "core/rules/departure.h"
#include "core/rules/keep_room.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/resize.h"
#include "core/rules/starts.h"
#include "core/rules/teams.h"

namespace neap {

namespace {

constexpr Micros look_again = minutes(1);  // at what is kept, and at who could not be helped
constexpr std::size_t waiters_seen = 64;   // of one tier, the first of them
constexpr int searches_per_look = 8;
constexpr int moves_per_call = 4;      // destinations looked for
constexpr std::int32_t most_made = 8;  // times that room is kept for one task before it is left be
constexpr std::uint32_t nodes_per_look = 64;
constexpr std::size_t waiters_lent_to = 32;  // of one shape, behind the first

std::int64_t times_saturated(std::int64_t milli, Micros span) {
  const Wide product = static_cast<Wide>(milli) * span.value;
  return static_cast<std::int64_t>(std::min<Wide>(product, std::int64_t{1} << 62));
}

}  // namespace

// ---- 8 ---------------------------------------------------------------------------------------

void Decider::keep_room() {
  const PoolIndex& index = *state_.index;
  if (state_.pause.active) return;
  const bool due = room_was_given_ || now_ >= state_.room_look_at;
  if (!index.reserved.empty() && (due || !index.agenda.shapes.empty())) {
    const std::vector<TaskId> kept(index.reserved.begin(), index.reserved.end());
    for (const TaskId id : kept) {
      if (state_.plans.contains(id)) make_room_for(id);
    }
  }
  if (!due || (index.waiters.empty() && index.reserved.empty())) return;
  Time next = reserve_for_waiters();
  if (!index.reserved.empty()) next = std::min(next, now_ + look_again);
  if (next != Time::never()) emit(LookScheduled{Look::room, next});
}

// In order of tier and submission: who has waited for so long, and is passed by others.
Time Decider::reserve_for_waiters() {
  const ReserveSpec& spec = state_.spec.reserve;
  Time next = Time::never();
  if (spec.most <= 0) return next;
  int searches = 0;
  std::vector<ShapeId> failed;
  for (std::uint8_t t = 0; t < state_.spec.tiers.size(); ++t) {
    if (state_.spec.tiers[t].purpose == Purpose::inference) continue;
    for (const TaskId id : first_waiters(TierId(t))) {
      const TaskState& task = state_.tasks.at(id);
      if (task.dedicated) continue;
      const Time due = task.phase_since + spec.after;
      if (due > now_) {
        next = std::min(next, due);
        continue;
      }
      next = std::min(next, now_ + look_again);
      if (std::find(failed.begin(), failed.end(), task.shape) != failed.end()) continue;
      if (is_over_limit(task) || !needs_room_kept(state_, task) || !has_turn(task)) continue;
      if (++searches > searches_per_look) return next;
      if (!reserve(task)) failed.push_back(state_.tasks.at(id).shape);
    }
  }
  return next;
}

std::vector<TaskId> Decider::first_waiters(TierId tier) const {
  std::vector<TaskId> out;
  const auto& waiters = state_.index->waiters;
  for (auto at = waiters.lower_bound({tier, QueueKey{}});
       at != waiters.end() && std::get<TierId>(*at) == tier && out.size() < waiters_seen; ++at) {
    out.push_back(std::get<QueueKey>(*at).task);
  }
  return out;
}

// Only so many at once; a heavier tier takes the turn of a lighter one.
bool Decider::has_turn(const TaskState& task) {
  const auto& reserved = state_.index->reserved;
  if (reserved.size() < static_cast<std::size_t>(state_.spec.reserve.most)) return true;
  const auto lightest = std::max_element(reserved.begin(), reserved.end(), [&](TaskId a, TaskId b) {
    const TierId x = state_.tasks.at(a).tier;
    const TierId y = state_.tasks.at(b).tier;
    return x != y ? x < y : a < b;
  });
  if (state_.tier(state_.tasks.at(*lightest).tier).weight >= state_.tier(task.tier).weight) {
    return false;
  }
  drop_plan_of(*lightest, "a heavier task has its turn");
  return true;
}

bool Decider::reserve(const TaskState& task) {
  std::optional<Room> room = find_room(state_, with_least(state_.shape(task.shape)), now_);
  if (!room) return false;
  if (room->victims.empty() && is_held_back(state_, task)) return false;
  if (room->victims.empty()) {
    start(task, std::move(room->slots));
    return true;
  }
  const TaskId id = task.id;
  emit(RoomReserved{id, std::move(room->slots), std::move(room->victims), room->expected});
  make_room_for(id);
  return true;
}

// Who would hold it up is moved, where that is worth more than it costs.
void Decider::make_room_for(TaskId id) {
  if (state_.plans.at(id).victims.empty()) return;  // it waits for its turn to start
  if (reclaim_loans(id)) return;                    // they are leaving
  const TaskState& task = state_.tasks.at(id);
  if (now_ > state_.plans.at(id).needed_by + look_again && task.reserved < most_made) {
    drop_plan_of(id, "its tenants stay longer than was expected");
    reserve(task);
    return;
  }
  std::vector<Victim> victims = state_.plans.at(id).victims;
  // Those to whom it is lent are asked once all others have left.
  const std::vector<TaskId>& lent = state_.plans.at(id).lent_to;
  if (lent.size() < victims.size()) {
    std::erase_if(victims, [&](const Victim& victim) {
      return std::binary_search(lent.begin(), lent.end(), victim.task);
    });
  }
  Time stay = now_;  // until then some stay whom nobody can move
  std::vector<std::pair<TaskId, Departure>> movable;
  for (const Victim& victim : victims) {
    const TaskState& tenant = state_.tasks.at(victim.task);
    const Departure departure = departure_of(state_, tenant, now_);
    const bool waited_for_by_others = state_.index->plans_of_victim.at(victim.task).size() > 1;
    const bool heavier = state_.tier(tenant.tier).weight > state_.tier(task.tier).weight;
    if (!departure.move || waited_for_by_others || heavier) {
      stay = std::max(stay, departure.gone());
    } else {
      movable.emplace_back(victim.task, departure);
    }
  }
  int looked = 0;
  for (const auto& [tenant, departure] : movable) {
    if (++looked > moves_per_call) return;
    move_for(id, tenant, departure, stay);
  }
}

namespace {
bool leaves_guarantees(const PoolState& state, const TaskState& task, const Shape& demand,
                       const Offer& offer) {
  const Victim victim{task.id, offer.mode, offer.release_by, offer.cost};
  return TeamRights(state, demand).allows(std::span(&victim, 1));
}
}  // namespace

// The wait that this saves, times g, has to be worth more than 1.5 times what the move costs.
void Decider::move_for(TaskId id, TaskId tenant, const Departure& departure, Time stay) {
  const Plan& plan = state_.plans.at(id);
  const Shape& shape = state_.shape(state_.tasks.at(id).shape);
  const TaskState& task = state_.tasks.at(tenant);
  const Time otherwise = std::min(departure.end, now_ + state_.spec.defragment.horizon);
  const Micros saved = otherwise - std::max(departure.move->release_by, stay);
  if (saved <= Micros(0)) return;
  const std::int64_t milli = shape.request.share.value * shape.request.count;
  if (!is_worth(times_saturated(milli, saved), departure.move->cost)) return;
  Elsewhere where;
  for (const Slot& slot : plan.slots) where.not_devices.push_back(slot.device);
  std::sort(where.not_devices.begin(), where.not_devices.end());
  std::vector<Slot> to = destination_of(state_, task, where);
  const Offer& offer = *departure.move;
  if (!to.empty()) {
    move({tenant, std::move(to), offer}, id);
  } else if (may_yield_to(state_, task, shape) && leaves_guarantees(state_, task, shape, offer)) {
    emit(YieldAsked{tenant, task.allocation, offer.mode, offer.release_by, StopReason::preempted});
  }
}

// Its place is claimed before it is asked.
void Decider::move(const Move& move, TaskId for_task) {
  emit(MovePlanned{move.task, move.to, for_task, move.offer.release_by});
  emit(YieldAsked{move.task, state_.tasks.at(move.task).allocation, move.offer.mode,
                  move.offer.release_by, StopReason::moved});
}

// ---- loans -----------------------------------------------------------------------------------

bool Decider::lend_room_to(const TaskState& task) {
  const bool may =
      !is_over_limit(task) && !is_carried_by_chain(state_, task) && !is_held_back(state_, task);
  if (state_.index->reserved.empty() || !may) return false;
  std::optional<Loan> loan = find_loan(state_, task, now_, lending_nodes_left_);
  if (!loan) return false;
  emit(TaskPlaced{task.id, AllocationId(state_.next_allocation), std::move(loan->slots),
                  loan->lender, loan->leaves_by});
  return true;
}

// Of one shape the first does not fit and may be too long for a loan; those behind it are looked
// at.
void Decider::lend_room_behind(ShapeId shape) {
  if (state_.index->reserved.empty()) return;
  const auto& queue = state_.index->waiting[shape.value];
  std::vector<TaskId> behind;
  for (auto at = queue.begin(); at != queue.end() && behind.size() <= waiters_lent_to; ++at) {
    if (at != queue.begin()) behind.push_back(at->task);
  }
  std::optional<Micros> failed;  // with so much work: more will not do either
  for (const TaskId id : behind) {
    const TaskState& task = state_.tasks.at(id);
    const auto work = remaining_work(task, now_);
    if (!work) continue;  // is as the first
    if (failed && *work >= *failed) continue;
    if (!lend_room_to(task)) failed = work;
  }
}

// Once all others have left, those to whom the room was lent are asked to give it back. True while
// one of them is on its way out, or still in its time; not if others are there, nor if all that
// are left stay longer than they said and cannot be asked.
bool Decider::reclaim_loans(TaskId lender) {
  const Plan& plan = state_.plans.at(lender);
  if (plan.lent_to.size() < plan.victims.size()) return false;
  const PreemptSpec& preempt = state_.spec.preempt;
  const Time by = now_ + preempt.checkpoint_interval + preempt.grace;
  const std::vector<TaskId> borrowers = plan.lent_to;
  bool some_leave = now_ <= needed_at(plan, Time(0)) + look_again;
  for (const TaskId id : borrowers) {
    const TaskState& task = state_.tasks.at(id);
    if (task.phase != Phase::running) some_leave = true;
    if (task.phase != Phase::running || !preempt.enabled) continue;
    const auto offer = cheapest_offer(state_, task, now_, by);
    if (!offer || offer->mode == ReleaseMode::finish || offer->mode == ReleaseMode::kill) continue;
    emit(YieldAsked{id, task.allocation, offer->mode, offer->release_by, StopReason::preempted});
    some_leave = true;
  }
  return some_leave;
}

// What is kept for lighter tasks is given to a heavier one that lacks it; what is kept for one of
// its own tier, to a task whose team lacks its guarantee.
bool Decider::give_room_to(const TaskState& task) {
  const auto& reserved = state_.index->reserved;
  if (reserved.empty()) return false;
  const Shape& shape = state_.shape(task.shape);
  const TeamRights rights(state_, shape);
  for (auto at = reserved.rbegin(); at != reserved.rend(); ++at) {
    const Plan& plan = state_.plans.at(*at);
    if (!rights.may_have_room_of(plan)) continue;
    if (!stands_in_the_way(state_, plan, shape, now_)) continue;
    const bool heavier =
        state_.tier(task.tier).weight > state_.tier(state_.tasks.at(*at).tier).weight;
    drop_plan_of(*at, heavier ? "a heavier task needs the room"
                              : "a team that has less than its guarantee needs the room");
    return true;
  }
  return false;
}

// ---- 10 ---------------------------------------------------------------------------------------

void Decider::defragment() {
  const DefragmentSpec& spec = state_.spec.defragment;
  const PoolIndex& index = *state_.index;
  if (!index.moving.empty() && state_.plans.size() > index.moving.size()) stop_consolidating();
  if (!spec.enabled || state_.pause.active || now_ < state_.consolidation_look_at) return;
  const bool batch_runs = std::any_of(
      index.running_by_tier.begin(), index.running_by_tier.end(), [](const auto& entry) {
        return std::get<1>(entry.first) == static_cast<std::uint8_t>(Purpose::batch);
      });
  if (!batch_runs || !is_low_tide(state_, now_) || lacks(state_, now_).empty()) return;
  emit(LookScheduled{Look::consolidation, now_ + spec.every});
  const auto nodes = static_cast<std::int64_t>(state_.nodes.size());
  const auto first = now_.us / std::max<std::int64_t>(1, spec.every.value) * nodes_per_look % nodes;
  const Window window{static_cast<std::uint32_t>(first), nodes_per_look};
  for (const Consolidation& cell : find_consolidations(state_, window, now_)) {
    for (const Move& one : cell.moves) move(one, TaskId::none());
  }
}

// The tide rises: who has not left yet stays.
void Decider::stop_consolidating() {
  const std::vector<TaskId> moving(state_.index->moving.begin(), state_.index->moving.end());
  for (const TaskId id : moving) {
    const bool can_stay = state_.tasks.at(id).phase == Phase::yielding;
    if (!state_.plans.at(id).for_task.valid() && can_stay) {
      drop_plan_of(id, "others need devices now");
    }
  }
}

}  // namespace neap
