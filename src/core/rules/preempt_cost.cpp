// The cost table of POLICIES 1, row by row.
#include <algorithm>
#include <array>

#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/deadline.h"
#include "core/rules/preempt.h"
#include "core/rules/preempt_cover.h"
#include "core/rules/preempt_outlook.h"

namespace neap {

namespace {

constexpr Micros fragmentation_horizon = seconds(600);
constexpr Micros shortest_interval = seconds(1);  // guards the arithmetic, not a rule

std::int64_t saturate(Wide cost) {
  return static_cast<std::int64_t>(std::clamp<Wide>(cost, 0, saturated_cost));
}

Micros measured_or(Micros seen, Micros declared) { return seen.value > 0 ? seen : declared; }

Micros interval_of(const PoolState& state, const TaskState& task) {
  const Micros declared = task.spec.contract.interval;
  const Micros interval = declared.value > 0 ? declared : state.spec.preempt.checkpoint_interval;
  return std::max(interval, shortest_interval);
}

bool has_boundaries(const ContractSpec& contract) { return contract.sdk || contract.watch; }

// With signals alone, SIGTERM makes it checkpoint: that is on demand.
bool checkpoints_on_demand(const TaskState& task) {
  const ContractSpec& contract = task.spec.contract;
  if (!contract.any()) return false;
  return contract.on_demand || task.on_demand_seen || !has_boundaries(contract);
}

// ---- protection ------------------------------------------------------------------------------

std::int64_t day_of(Time t) { return t.us / hours(24).value; }

bool is_inside(const DayWindow& window, Time t) {
  const Micros at(t.us % hours(24).value);
  if (window.from <= window.to) return window.from <= at && at < window.to;
  return at >= window.from || at < window.to;
}

bool is_inside_any(const TaskState& task, Time t) {
  return std::any_of(task.spec.windows.begin(), task.spec.windows.end(),
                     [t](const DayWindow& window) { return is_inside(window, t); });
}

// The next moment after `t` at which the clock shows `at`.
Time next_clock(Time t, Micros at) {
  const Time today(day_of(t) * hours(24).value + at.value);
  return today > t ? today : today + hours(24);
}

// In the buffer, in the lane without having been started there by force, or in room that is kept
// for another. A buffer that is derived moves over tasks
// that are not releasable too: theirs is no loan.
bool on_lendable(const PoolState& state, const TaskState& task) {
  if (is_borrower(state, task.id)) return true;
  const bool borrows_lane = task.lane == LaneUse::borrows && task.lane_until == Time(0);
  if (!task.releasable && !borrows_lane) return false;
  return std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
    const Role role = state.device(slot.device).role;
    return (role == Role::buffer && task.releasable) || (role == Role::lane && borrows_lane);
  });
}

bool budget_is_spent(const PoolState& state, const TaskState& task, Time now) {
  return task.preemption_day == day_of(now) &&
         task.preemptions_today >= state.spec.preempt.budget_per_day;
}

struct Protection {
  bool active = false;
  Time changes = Time::never();  // may be another one from here on; never late
};

Protection protection_of(const PoolState& state, const TaskState& task, Micros restore, Time now) {
  if (on_lendable(state, task)) return {};
  Protection out;
  const auto may_change = [&](Time at) { out.changes = std::min(out.changes, at); };
  const Micros window = std::max(state.spec.preempt.protect_min, restore * protected_restores);
  if (now < task.started_at + window) {
    out.active = true;
    may_change(task.started_at + window);
  }
  for (const DayWindow& declared : task.spec.windows) {
    const bool inside = is_inside(declared, now);
    out.active = out.active || inside;
    may_change(next_clock(now, inside ? declared.to : declared.from));
  }
  if (budget_is_spent(state, task, now)) {
    out.active = true;
    may_change(next_clock(now, Micros(0)));
  }
  return out;
}

// ---- boundaries ------------------------------------------------------------------------------

struct Boundary {
  Time at;
  Time moves;
};

// One interval after the last durable checkpoint. One that is late by more than it takes to save
// was missed: then the next one of the same rhythm counts.
Boundary next_boundary(Time captured, Micros interval, Micros save, Time now) {
  const Time due = captured + interval;
  if (now <= due + save) return {due, due + save + microseconds(1)};
  const std::int64_t passed = (now - captured).value;
  const std::int64_t rounds = (passed + interval.value - 1) / interval.value;
  const Time at = captured + interval * rounds;
  return {at, at + microseconds(1)};
}

// ---- costs -----------------------------------------------------------------------------------

enum class View : std::uint8_t { exact, widest };

// What is stranded beside a fractional task that is alone on its device becomes a whole device.
std::int64_t relieved_milli(const PoolState& state, const TaskState& task, View view) {
  std::int64_t sum = 0;
  for (const Slot& slot : task.slots) {
    if (slot.share >= whole_device) continue;
    const DeviceState& device = state.device(slot.device);
    if (view == View::widest) {
      sum += (whole_device - slot.share).value;
    } else if (device.tenants.size() == 1 && device.held_share == MilliGpu(0) &&
               is_usable(state, device)) {
      sum += (whole_device - device.used_share).value;
    }
  }
  return sum;
}

Wide restart_cost(const PoolState& state, const TaskState& task, std::int64_t held,
                  Micros restore) {
  const Wide base = static_cast<Wide>(held) * restore.value;
  const std::int64_t weight_ppm = std::int64_t{state.tier(task.tier).weight} * 10'000;
  const std::int64_t rise = (std::int64_t{1} << std::clamp(task.preemptions, 0, 5)) - 1;
  const Wide fairness = base * weight_ppm * rise / 1'000'000;
  // A burst is served from the buffer before others yield (S4): whoever was lent a device there
  // gives it back for half of the fixed price. For nothing, a swarm of small tasks would be the
  // cheapest always, and what they leave is on as many nodes.
  const std::int64_t fixed =
      on_lendable(state, task) ? state.spec.preempt.fixed_cost / 2 : state.spec.preempt.fixed_cost;
  return base + fixed + fairness;
}

Outlook make_outlook(const PoolState& state, const TaskState& task, Time now, View view) {
  const ReleaseTimes times = release_times(state, task, now);
  Outlook out;
  out.now = now;
  out.held = held_milli(task);
  out.captured = task.captured;
  if (times.remaining) {
    out.finish = now + *times.remaining;
    out.finish_only = out.finish - times.restore;
  }
  const Protection protection = protection_of(state, task, times.restore, now);
  out.is_protected = protection.active;
  out.protection_changes = protection.changes;

  const Wide restart = restart_cost(state, task, out.held, times.restore);
  const Wide relieved =
      static_cast<Wide>(relieved_milli(state, task, view)) * fragmentation_horizon.value;
  bool misses_deadline = false;
  if (task.deadline == DeadlineVerdict::accepted) {
    // t + R + the expected wait + W > D
    const Micros back = times.restore + expected_wait(state, task.tier);
    const Time done = now + back + times.remaining.value_or(Micros(0));
    misses_deadline = done > *task.spec.deadline;
    out.deadline_near = *task.spec.deadline - back + microseconds(1);
  }
  const auto cost = [&](Micros paid) {
    if (misses_deadline) return saturated_cost;
    return saturate(static_cast<Wide>(out.held) * paid.value + restart - relieved);
  };
  if (times.next_boundary) {
    const Boundary boundary =
        next_boundary(task.captured, interval_of(state, task), times.save, now);
    out.boundary_moves = boundary.moves;
    // A declared window is kept at the moment of stopping too (D3).
    if (on_lendable(state, task) || !is_inside_any(task, boundary.at)) {
      out.boundary_release = boundary.at + times.save + times.release;
    }
    out.boundary_cost = cost(times.stall);
  }
  if (checkpoints_on_demand(task)) {
    out.on_demand_after = times.drain + times.save + times.release;
    out.on_demand_cost = cost(times.save);
    // Who restores hears nobody, and what it has is saved: asked for more it would be stopped for
    // its silence, and the restore would be for nothing.
    const bool restores =
        task.first_started < task.started_at && now < task.started_at + times.restore;
    if (restores) out.on_demand_from = task.started_at + times.restore + *out.on_demand_after;
  }
  const Time limit = task.captured + interval_of(state, task);
  if (state.spec.preempt.break_glass && now <= limit) {
    out.kill_after = times.release;
    out.kill_ends = limit + microseconds(1);
    out.kill_cost = static_cast<std::int64_t>(
        misses_deadline ? saturated_cost : std::min<Wide>(restart - relieved, saturated_cost));
  }
  return out;
}

}  // namespace

ReleaseTimes release_times(const PoolState& state, const TaskState& task, Time now) {
  const ContractSpec& contract = task.spec.contract;
  ReleaseTimes out;
  out.save = measured_or(task.seen_save, contract.save);
  out.stall = measured_or(task.seen_stall, contract.stall);
  out.drain = contract.drain;
  out.release = contract.release;
  out.restore = measured_or(task.seen_restore, contract.restore);
  out.remaining = remaining_work(task, now);
  if (has_boundaries(contract)) {
    out.next_boundary = next_boundary(task.captured, interval_of(state, task), out.save, now).at;
  }
  return out;
}

bool is_protected(const PoolState& state, const TaskState& task, Time now) {
  const Micros restore = measured_or(task.seen_restore, task.spec.contract.restore);
  return protection_of(state, task, restore, now).active;
}

bool may_yield_to(const PoolState& state, const TaskState& task, const Shape& demand,
                  Taking taking) {
  if (task.phase != Phase::running || task.purpose == Purpose::inference) return false;
  if (task.purpose == Purpose::interactive && demand.purpose != Purpose::inference) return false;
  if (!task.spec.interruptible) return false;
  const std::int32_t wanted = state.tier(demand.tier).weight;
  // On devices that are lent nothing protects.
  if (chain_protects(state, task) && !on_lendable(state, task)) {
    return weight_in_chain(state, task) < wanted;
  }
  const std::int32_t weight = state.tier(task.tier).weight;
  if (taking == Taking::equal && task.purpose == Purpose::batch) return weight <= wanted;
  return weight < wanted;
}

bool is_candidate(const PoolState& state, const TaskState& task, const Shape& demand,
                  Taking taking) {
  if (!may_yield_to(state, task, demand, taking)) return false;
  const auto& taken = state.index->plans_of_victim;
  return taken.empty() || !taken.contains(task.id);
}

Outlook outlook_of(const PoolState& state, const TaskState& task, Time now) {
  return make_outlook(state, task, now, View::exact);
}

Outlook widest_outlook_of(const PoolState& state, const TaskState& task, Time now) {
  return make_outlook(state, task, now, View::widest);
}

std::optional<Offer> offer_by(const Outlook& outlook, Time needed_by, Killing killing) {
  std::optional<Offer> best;
  const auto consider = [&](ReleaseMode mode, Time release, std::int64_t cost) {
    if (release > needed_by || (best && best->cost <= cost)) return;
    best = Offer{mode, release, cost};
  };
  if (outlook.finish != Time::never()) consider(ReleaseMode::finish, outlook.finish, 0);
  if (outlook.now >= outlook.finish_only || outlook.is_protected) return best;
  if (outlook.boundary_release) {
    consider(ReleaseMode::boundary, *outlook.boundary_release, outlook.boundary_cost);
  }
  if (outlook.on_demand_after) {
    consider(ReleaseMode::on_demand,
             std::max(outlook.now + *outlook.on_demand_after, outlook.on_demand_from),
             outlook.on_demand_cost);
  }
  if (outlook.kill_after && killing == Killing::break_glass) {
    const Wide lost = static_cast<Wide>(outlook.held) * (outlook.now - outlook.captured).value;
    consider(ReleaseMode::kill, outlook.now + *outlook.kill_after,
             saturate(lost + outlook.kill_cost));
  }
  return best;
}

VictimBounds::Bound offer_bound(const Outlook& outlook, Micros horizon, Killing killing) {
  VictimBounds::Bound bound;
  Outlook cheapest = outlook;
  cheapest.captured = outlook.now;  // killing costs more with every moment: not less than this
  if (const auto offer = offer_by(cheapest, outlook.now + horizon, killing)) {
    bound.cost = offer->cost;
  }
  const auto may_change = [&](Time at) {
    if (at > outlook.now) bound.until = std::min(bound.until, at);
  };
  if (outlook.finish != Time::never()) {
    may_change(outlook.finish - horizon);
    may_change(outlook.finish_only);
    may_change(outlook.finish);
  }
  may_change(outlook.protection_changes);
  if (outlook.boundary_release) may_change(*outlook.boundary_release - horizon);
  if (outlook.on_demand_after) may_change(outlook.on_demand_from - horizon);
  may_change(outlook.boundary_moves);
  may_change(outlook.deadline_near);
  if (killing == Killing::break_glass) may_change(outlook.kill_ends);
  return bound;
}

std::optional<Offer> cheapest_offer(const PoolState& state, const TaskState& task, Time now,
                                    Time needed_by) {
  return offer_by(outlook_of(state, task, now), needed_by, Killing::break_glass);
}

}  // namespace neap
