#include "core/rules/switching.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/profile.h"
#include "core/rules/scale.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

constexpr Micros one_day = hours(24);
// Answers that are still late after so long come from too much load, not from a cold start.
constexpr Micros longest_warm_up = minutes(2);
// Who is asked for the first time later than that was idle before, and that is no part of it.
constexpr Micros first_asked_within = seconds(20);
// In milli-GPU·ms: eight device-hours say something, a thousand are enough.
constexpr std::int64_t device_hour = std::int64_t{1000} * 3'600'000;
constexpr std::int64_t lent_needed = 8 * device_hour;
constexpr std::int64_t lent_kept = 1000 * device_hour;
constexpr Ppm least_useful{100'000};

void push(Observed& observed, std::int64_t value) {
  ++observed.count;
  observed.last.push_back(value);
  if (observed.last.size() > observations_kept) observed.last.erase(observed.last.begin());
}

Micros estimate(const Observed& observed, Micros expected) {
  if (const auto known = p90_of(observed)) return Micros(*known);
  for (const std::int64_t seen : observed.last) expected = std::max(expected, Micros(seen));
  return expected;
}

ModelId model_of(const PoolState& state, const TaskState& task) {
  return task.slots.empty() ? ModelId::none() : state.device(task.slots.front().device).model;
}

// The entry of its version and device, moved to the end: the newest used.
SwitchCost& cost_entry(PoolState& state, const TaskState& task) {
  auto& costs = state.services[task.service.value].switches.costs;
  const ModelId model = model_of(state, task);
  const auto found = std::find_if(costs.begin(), costs.end(), [&](const SwitchCost& cost) {
    return cost.version == task.version && cost.model == model;
  });
  if (found != costs.end()) {
    std::rotate(found, found + 1, costs.end());
    return costs.back();
  }
  if (costs.size() >= switch_costs_kept) costs.erase(costs.begin());
  return costs.emplace_back(SwitchCost{task.version, model, {}, {}, {}});
}

struct Expected {
  Micros leave, load, warm_up;
};

SwitchPrice price_from(const SwitchCost& cost, const Expected& expected) {
  return {estimate(cost.leave, expected.leave),
          estimate(cost.load, expected.load),
          estimate(cost.warm_up, expected.warm_up),
          cost.leave.count,
          cost.load.count,
          cost.warm_up.count};
}

// What the newest other version cost, where it was measured.
Expected expected_of(const PoolState& state, const ServiceState& service) {
  const ScaleSpec& scale = scale_of(state, service);
  Expected expected{scale.switch_leave, scale.switch_load, Micros(0)};
  for (const SwitchCost& cost : service.switches.costs) {
    if (cost.version == service.version) continue;
    if (const auto leave = p90_of(cost.leave)) expected.leave = Micros(*leave);
    if (const auto load = p90_of(cost.load)) expected.load = Micros(*load);
    if (const auto warm = p90_of(cost.warm_up)) expected.warm_up = Micros(*warm);
  }
  return expected;
}

bool has_lent_device(const PoolState& state, const TaskState& task) {
  return std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
    return state.device(slot.device).role == Role::buffer;
  });
}

}  // namespace

SwitchPrice price_of(const PoolState& state, const ServiceState& service) {
  const Expected expected = expected_of(state, service);
  SwitchPrice dearest = price_from({}, expected);
  bool known = false;
  for (const SwitchCost& cost : service.switches.costs) {
    if (cost.version != service.version) continue;
    const SwitchPrice price = price_from(cost, expected);
    if (!known || price.all() > dearest.all()) dearest = price;
    known = true;
  }
  return dearest;
}

Ppm useful_lent(const PoolState& state) {
  const LentUse& lent = state.lent;
  if (lent.held < lent_needed) return all_ppm;
  return std::clamp(Ppm(lent.useful / (lent.held / all_ppm.value)), least_useful, all_ppm);
}

Micros break_even(const PoolState& state, const ServiceState& service) {
  const Micros cost = std::min(price_of(state, service).all(), one_day);
  const std::int64_t useful = useful_lent(state).value;
  return std::min(Micros((cost.value * all_ppm.value + useful - 1) / useful), one_day);
}

Micros dwell_of(const PoolState& state, const ServiceState& service) {
  const ScaleSpec& scale = scale_of(state, service);
  return scale.dwell_measured ? break_even(state, service) : scale.dwell;
}

std::optional<std::int64_t> switches_allowed(const PoolState& state, const ServiceState& service) {
  const Ppm budget = scale_of(state, service).switch_budget;
  if (budget.value == 0) return std::nullopt;
  const Request& request = service.spec.request;
  const std::int64_t milli = request.count * request.share.value;
  const std::int64_t fit = std::int64_t{state.index->usable_shared} * whole_device.value / milli;
  const std::int64_t replicas = std::min<std::int64_t>(service.spec.max_replicas, fit);
  const std::int64_t paid = replicas * (one_day.value / all_ppm.value) * budget.value;
  return paid / std::max<std::int64_t>(1, price_of(state, service).all().value);
}

std::int64_t switches_of_day(const ServiceState& service, Time now) {
  std::int64_t given = 0;
  for (const SwitchHour& hour : service.switches.hours) {
    if (hour_of(now) - hour.hour < switch_hours_kept) given += hour.given;
  }
  return given;
}

std::optional<std::int64_t> switches_left(const PoolState& state, const ServiceState& service,
                                          Time now) {
  const auto allowed = switches_allowed(state, service);
  if (!allowed) return std::nullopt;
  return std::max<std::int64_t>(0, *allowed - switches_of_day(service, now));
}

std::string kept_by_budget(const PoolState& state, Time now) {
  std::string names;
  for (const ServiceState& service : state.services) {
    if (service.removed || service.below_since == Time::never()) continue;
    const auto left = switches_left(state, service, now);
    if (!left || *left > 0) continue;
    const ScaleSpec& scale = scale_of(state, service);
    const bool tidal = scale.mode == ScaleMode::tidal;
    const Micros needed = tidal ? dwell_of(state, service) : scale.down_for;
    const bool more = staying_replicas(state, service) > std::max(1, service.spec.min_replicas);
    if (!more || now - service.below_since < needed) continue;
    names += (names.empty() ? "" : ", ") + service.spec.name;
  }
  return names;
}

Time switches_again_at(const PoolState& state, const ServiceState& service, Time now) {
  const auto allowed = switches_allowed(state, service);
  if (!allowed) return now;
  std::int64_t given = switches_of_day(service, now);
  if (given < *allowed) return now;
  for (const SwitchHour& hour : service.switches.hours) {
    if (hour_of(now) - hour.hour >= switch_hours_kept) continue;
    given -= hour.given;
    if (given < *allowed) return Time((hour.hour + switch_hours_kept) * hours(1).value);
  }
  return Time::never();  // not even one a day
}

// ---- for apply -------------------------------------------------------------------------------

void note_given(PoolState& state, TaskState& task) {
  ServiceState& service = state.services[task.service.value];
  if (service.removed) return;  // for good: nothing comes back
  task.leaving_since = state.now;
  SwitchBook& book = service.switches;
  ++book.given;
  const std::int64_t hour = hour_of(state.now);
  if (book.hours.empty() || book.hours.back().hour != hour) book.hours.push_back({hour, 0});
  ++book.hours.back().given;
  std::erase_if(book.hours,
                [&](const SwitchHour& old) { return hour - old.hour >= switch_hours_kept; });
}

void note_left(PoolState& state, const TaskState& task) {
  // One that never served had nothing to drain.
  if (task.leaving_since == Time(0) || task.ready_at < task.placed_at) return;
  push(cost_entry(state, task).leave, (state.now - task.leaving_since).value);
}

void note_loaded(PoolState& state, TaskState& task) {
  push(cost_entry(state, task).load, (state.now - task.placed_at).value);
  task.warm_up = WarmUp::unseen;
}

void note_answers(PoolState& state, TaskState& task, const RequestsServed& served) {
  if (task.warm_up == WarmUp::over || served.responses <= 0) return;
  const Micros since = state.now - task.ready_at;
  const bool was_idle = task.warm_up == WarmUp::unseen && since > first_asked_within;
  const bool late_by_load = served.within_slo < served.responses &&
                            is_short(state, state.service(task.service), state.now);
  if (since > longest_warm_up || was_idle || late_by_load) {
    task.warm_up = WarmUp::over;  // nothing is learned from it
  } else if (served.within_slo < served.responses) {
    task.warm_up = WarmUp::late;
  } else {
    const bool late = task.warm_up == WarmUp::late;
    push(cost_entry(state, task).warm_up, late ? since.value : 0);
    task.warm_up = WarmUp::over;
  }
}

void note_lent_use(PoolState& state, const TaskState& task, Saved saved) {
  if (task.purpose == Purpose::inference || !has_lent_device(state, task)) return;
  const std::int64_t milli = held_milli(task);
  const std::int64_t ms = milliseconds(1).value;
  state.lent.held += milli * ((state.now - task.placed_at).value / ms);
  if (task.started_at >= task.placed_at) {
    const Time begun = std::max(task.started_at, task.placed_at + task.seen_restore);
    const Time until = saved == Saved::all ? state.now : task.captured;
    if (until > begun) state.lent.useful += milli * ((until - begun).value / ms);
  }
  if (state.lent.held > lent_kept) {
    state.lent.held /= 2;
    state.lent.useful /= 2;
  }
}

}  // namespace neap
