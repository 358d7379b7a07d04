#include "core/rules/tide.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/scale.h"

namespace neap {

namespace {

constexpr std::int64_t days_planned_from = 7;

std::int64_t hour_of(Time at) { return at.us / hours(1).value; }

// Hours that have passed unseen are not known.
void open_hour(DayCurve& curve, std::int64_t hour) {
  const bool is_new = curve.closed.empty() && !curve.open;
  if (is_new || hour - curve.hour > static_cast<std::int64_t>(hours_kept)) {
    curve = DayCurve{.hour = hour};
    return;
  }
  for (; curve.hour < hour; ++curve.hour) {
    curve.closed.push_back(curve.open);
    curve.open.reset();
  }
  if (curve.closed.size() > hours_kept) {
    const std::size_t surplus = curve.closed.size() - hours_kept;
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

std::int64_t planned_replicas(const DayCurve& curve, Time at) {
  std::vector<std::int64_t> known;
  for (std::int64_t day = 1; day <= days_planned_from; ++day) {
    const std::int64_t back = curve.hour - (hour_of(at) - 24 * day);
    if (back < 1 || back > static_cast<std::int64_t>(curve.closed.size())) continue;
    const auto& peak = curve.closed[curve.closed.size() - static_cast<std::size_t>(back)];
    if (peak) known.push_back(*peak);
  }
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
      std::max(planned_replicas(service.curve, now),
               planned_replicas(service.curve, now + state.spec.tide.lead));
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

void note_tide(const PoolState& state, ServiceState& service, std::int64_t in_use) {
  const std::int64_t replicas = replicas_for(service, in_use);
  const Request& request = service.spec.request;
  const std::int64_t milli = replicas * request.count * request.share.value;
  const std::int64_t devices = (milli + whole_device.value - 1) / whole_device.value;
  if (state.spec.tide.derive) {
    service.slot_peak =
        std::max(service.slot_peak.value_or(0), std::min(devices, lead_time::most_devices));
  }
  if (scale_of(state, service).mode != ScaleMode::tidal) return;
  open_hour(service.curve, hour_of(state.now));
  service.curve.open = std::max(service.curve.open.value_or(0), replicas);
  note_sample(service, {state.now, in_use}, scale_of(state, service).trend);
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
