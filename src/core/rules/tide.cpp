#include "core/rules/tide.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/scale.h"
#include "core/rules/switching.h"

namespace neap {

namespace {

constexpr std::int64_t days_planned_from = 7;
constexpr std::int64_t weeks_planned_from = 4;
constexpr std::size_t days_of_a_kind = 3;
constexpr std::size_t days_for_the_usual = 5;

// Hours that have passed unseen are not known.
void open_hour(DayCurve& curve, std::int64_t hour, std::size_t kept) {
  const bool is_new = curve.closed.empty() && !curve.open;
  if (is_new || hour - curve.hour > static_cast<std::int64_t>(kept)) {
    curve = DayCurve{.hour = hour};
    return;
  }
  for (; curve.hour < hour; ++curve.hour) {
    curve.closed.push_back(curve.open);
    curve.open.reset();
  }
  if (curve.closed.size() > kept) {
    const std::size_t surplus = curve.closed.size() - kept;
    curve.closed.erase(curve.closed.begin(),
                       curve.closed.begin() + static_cast<std::ptrdiff_t>(surplus));
  }
}

lead_time::ElasticSpec elastic_spec(const PoolState& state) {
  const TideSpec& tide = state.spec.tide;
  lead_time::ElasticSpec spec;
  spec.guard.devices = std::max<std::int64_t>(1, state.index->usable_shared);
  spec.guard.slot_seconds = static_cast<std::int32_t>(tide.slot.value / seconds(1).value);
  spec.guard.lead_seconds = static_cast<std::int32_t>(tide.lead.value / seconds(1).value);
  spec.guard.violations_per_mille = tide.violations_per_mille;
  spec.paying_per_mille = lead_time::paying_violations(tide.costs);
  return spec;
}

}  // namespace

Result<void> check(const TideSpec& tide) {
  const auto as = [](const Result<void>& done, const char* field) -> Result<void> {
    return fail(ErrorCode::invalid_argument, done.error().message, field);
  };
  const std::int64_t second = seconds(1).value;
  if (tide.slot < minutes(1) || hours(1).value % tide.slot.value != 0 ||
      tide.slot.value % second != 0) {
    return fail(ErrorCode::invalid_argument, "expected 1min to 1h, and a divisor of an hour",
                "slot");
  }
  if (tide.lead < seconds(1) || tide.lead > hours(1) || tide.lead.value % second != 0) {
    return fail(ErrorCode::invalid_argument,
                "expected 1s to 1h in whole seconds: beyond an hour the rule gains nothing",
                "lead");
  }
  if (tide.violations_per_mille < 1 || tide.violations_per_mille > 500) {
    return fail(ErrorCode::invalid_argument, "expected 0.1 % to 50 %", "violations");
  }
  if (const auto costs = lead_time::check(tide.costs); !costs) {
    return as(costs, costs.error().context.c_str());
  }
  if (tide.calendar.size() > lead_time::most_promotions) {
    return fail(ErrorCode::invalid_argument, "too many entries", "calendar");
  }
  for (const lead_time::Promotion& promotion : tide.calendar) {
    if (const auto done = lead_time::check(promotion); !done) return as(done, "calendar");
  }
  return {};
}

const ScaleSpec& scale_of(const PoolState& state, const ServiceState& service) {
  return service.spec.scale ? *service.spec.scale : state.spec.scale;
}

std::int64_t replicas_for(const ServiceState& service, std::int64_t in_use) {
  const std::int64_t each = std::max(1, service.spec.concurrency);
  return (in_use + each - 1) / each;
}

bool is_short(const PoolState& state, const ServiceState& service, Time now) {
  const auto ready = std::count_if(service.replicas.begin(), service.replicas.end(),
                                   [&](TaskId id) { return state.tasks.at(id).ready; });
  const DrillState& drill = state.drill;
  const bool rehearsed = drill.phase == DrillPhase::demand && drill.service == service.id;
  if (rehearsed && drill.replicas > ready) return true;
  if (!service.in_use || service.last_sample == Time::never()) return false;
  if (now - service.last_sample > scale_of(state, service).stale_after) return false;
  return replicas_for(service, *service.in_use) > ready;
}

namespace {

// What the hours needed at most, so many days before; nothing where one of them is not known.
std::optional<std::int64_t> need_of(const DayCurve& curve, std::int64_t first, std::int64_t last,
                                    std::int64_t days_before) {
  std::int64_t need = 0;
  for (std::int64_t hour = first; hour <= last; ++hour) {
    const std::int64_t back = curve.hour - (hour - 24 * days_before);
    if (back < 1 || back > static_cast<std::int64_t>(curve.closed.size())) return std::nullopt;
    const auto& peak = curve.closed[curve.closed.size() - static_cast<std::size_t>(back)];
    if (!peak) return std::nullopt;
    need = std::max(need, *peak);
  }
  return need;
}

// The epoch began on a Thursday.
bool is_weekend(std::int64_t hour) {
  const std::int64_t since_monday = (hour / 24 + 3) % 7;
  return since_monday >= 5;
}

// What the same hours needed on the days that the plan is made from, the newest first.
std::vector<std::int64_t> needs_of(const DayCurve& curve, std::int64_t first, std::int64_t last,
                                   PlanDays days) {
  std::vector<std::int64_t> known;
  const auto add = [&](std::int64_t days_before) {
    if (const auto need = need_of(curve, first, last, days_before)) known.push_back(*need);
  };
  if (days == PlanDays::weekday) {
    for (std::int64_t week = 1; week <= weeks_planned_from; ++week) add(7 * week);
    if (known.size() == static_cast<std::size_t>(weeks_planned_from)) return known;
    return needs_of(curve, first, last, PlanDays::kind);
  }
  if (days == PlanDays::kind) {
    for (std::int64_t day = 1; day <= 7 * weeks_planned_from; ++day) {
      if (known.size() == static_cast<std::size_t>(days_planned_from)) break;
      if (is_weekend(first) == is_weekend(first - 24 * day)) add(day);
    }
    if (known.size() >= days_of_a_kind) return known;
    known.clear();
  }
  for (std::int64_t day = 1; day <= days_planned_from; ++day) add(day);
  return known;
}

}  // namespace

std::optional<std::int64_t> usual_need(const DayCurve& curve, Time from, Time until,
                                       PlanDays days) {
  std::vector<std::int64_t> known = needs_of(curve, hour_of(from), hour_of(until), days);
  if (known.size() < days_for_the_usual) return std::nullopt;
  std::sort(known.begin(), known.end());
  return known[(known.size() * 4 + 4) / 5 - 1];
}

std::int64_t planned_replicas(const DayCurve& curve, Time at, PlanDays days) {
  std::vector<std::int64_t> known = needs_of(curve, hour_of(at), hour_of(at), days);
  if (known.empty()) return 0;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

std::int64_t expected_rise(const ServiceState& service, Micros trend) {
  if (trend.value == 0 || service.recent.size() < 2) return 0;
  // The newest sample that is a whole trend old, or the oldest there is.
  const LoadSample& last = service.recent.back();
  const LoadSample* first = &service.recent.front();
  for (const LoadSample& sample : service.recent) {
    if (last.at - sample.at < trend) break;
    first = &sample;
  }
  const Micros passed = last.at - first->at;
  const std::int64_t rise = last.in_use - first->in_use;
  if (rise <= 0 || passed <= Micros(0)) return 0;
  // Over a gap longer than the trend only a part of the rise belongs to it.
  return passed <= trend ? rise : rise * trend.value / passed.value;
}

namespace {

// One sample in a tenth of the trend is enough; those older than the trend but the newest of them
// are forgotten.
void note_sample(ServiceState& service, const LoadSample& sample, Micros trend) {
  auto& recent = service.recent;
  if (trend.value == 0) {
    recent.clear();
    return;
  }
  const auto needed = static_cast<std::int64_t>(samples_kept) - 4;
  const bool is_dense =
      recent.size() >= 2 && sample.at - recent[recent.size() - 2].at < Micros(trend.value / needed);
  if (is_dense) recent.pop_back();  // the newest always counts
  recent.push_back(sample);
  while (recent.size() > 2 && (sample.at - recent[1].at >= trend || recent.size() > samples_kept)) {
    recent.erase(recent.begin());
  }
}

}  // namespace

std::optional<std::int32_t> tidal_target(const PoolState& state, const ServiceState& service,
                                         Time now) {
  const ScaleSpec& scale = scale_of(state, service);
  if (!service.in_use || service.last_sample == Time::never()) return std::nullopt;
  if (now - service.last_sample > scale.stale_after) return std::nullopt;
  const std::int64_t with_headroom =
      (*service.in_use * (all_ppm + scale.headroom).value + all_ppm.value - 1) / all_ppm.value;
  const std::int64_t planned =
      std::max(planned_replicas(service.curve, now, scale.plan_days),
               planned_replicas(service.curve, now + state.spec.tide.lead, scale.plan_days));
  const std::int64_t wanted =
      std::max(replicas_for(service, with_headroom + expected_rise(service, scale.trend)),
               (planned * scale.plan.value + all_ppm.value - 1) / all_ppm.value);
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(wanted, service.spec.min_replicas, service.spec.max_replicas));
}

std::int64_t lendable_wanted(const PoolState& state) {
  const std::int64_t fixed = state.spec.elastic_buffer;
  if (!state.spec.tide.derive || !state.tide.begun) return fixed;
  const lead_time::Claim claim = claim_of(elastic_spec(state), state.tide.elastic);
  const std::int64_t claimed =
      claim.ready ? claim.guard + claim.buffer : std::int64_t{state.index->usable_shared};
  return std::max(fixed, claimed - state.spec.inference_guard_min);
}

std::optional<std::int64_t> hours_learned(const PoolState& state) {
  if (!state.spec.tide.derive || state.tide.elastic.guard.ready()) return std::nullopt;
  const auto& hours = state.tide.elastic.guard.hours;
  return std::count_if(hours.begin(), hours.end(),
                       [](const lead_time::Hour& hour) { return hour.excess.has_value(); });
}

// ---- for apply -------------------------------------------------------------------------------

namespace {

// At the first sample of an hour it is seen what the time in which a switch pays usually needs
// (POLICIES 3): 1.25 times the break-even time.
void note_hour(const PoolState& state, ServiceState& service) {
  const ScaleSpec& scale = scale_of(state, service);
  const std::int64_t hour = hour_of(state.now);
  const bool is_first = service.curve.hour != hour;
  open_hour(service.curve, hour,
            scale.plan_days == PlanDays::recent ? hours_kept : hours_kept_of_weeks);
  service.hour_needs.reset();
  if (!is_first || !scale.dwell_measured) return;
  const Time until = state.now + break_even(state, service) * 5 / 4;
  const auto usual = usual_need(service.curve, state.now, until, scale.plan_days);
  if (!usual) return;
  service.hour_needs = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(*usual, service.spec.min_replicas, service.spec.max_replicas));
}

}  // namespace

void note_tide(const PoolState& state, ServiceState& service, std::int64_t in_use) {
  const std::int64_t replicas = replicas_for(service, in_use);
  const Request& request = service.spec.request;
  const std::int64_t milli = replicas * request.count * request.share.value;
  const std::int64_t devices = (milli + whole_device.value - 1) / whole_device.value;
  if (state.spec.tide.derive) {
    service.slot_peak =
        std::max(service.slot_peak.value_or(0), std::min(devices, lead_time::most_devices));
  }
  const ScaleSpec& scale = scale_of(state, service);
  if (scale.mode != ScaleMode::tidal) return;
  note_hour(state, service);
  service.curve.open = std::max(service.curve.open.value_or(0), replicas);
  note_sample(service, {state.now, in_use}, scale.trend);
  const auto target = tidal_target(state, service, state.now);
  if (!target) return;
  const std::int32_t staying = staying_replicas(state, service);
  if (*target >= staying) {
    service.below_since = Time::never();
    service.needed_while_low = 0;
  } else if (service.below_since == Time::never() || service.needed_while_low >= staying) {
    // The time begins anew too once those have gone who were not needed in it.
    service.below_since = state.now;
    service.needed_while_low = *target;
  } else {
    service.needed_while_low = std::max(service.needed_while_low, *target);
  }
}

bool close_slots(PoolState& state, const DemandCounted& counted) {
  TideBook& book = state.tide;
  const TideSpec& tide = state.spec.tide;
  const lead_time::ElasticSpec spec = elastic_spec(state);
  const auto floor_at = [&](Time slot) {
    return lead_time::floor_of(tide.calendar, spec.guard, slot);
  };
  const std::int64_t before = lendable_wanted(state);
  for (ServiceState& service : state.services) service.slot_peak.reset();
  if (counted.slots == 0) {
    book = TideBook{.begun = true,
                    .slot_begin = Time(state.now.us / tide.slot.value * tide.slot.value)};
    book.elastic = lead_time::begin(spec, floor_at(book.slot_begin));
  }
  for (std::int64_t slot = 0; slot < counted.slots; ++slot) {
    book.slot_begin = book.slot_begin + tide.slot;
    const auto told = slot == 0 ? counted.demand : std::nullopt;
    const auto known = lead_time::unless_outage(spec.guard, book.outage, told);
    lead_time::advance(spec, book.elastic, {known, floor_at(book.slot_begin)});
  }
  return lendable_wanted(state) != before;
}

}  // namespace neap
