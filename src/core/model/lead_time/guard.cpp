#include "core/model/lead_time/guard.h"

#include <algorithm>
#include <string>

#include "core/model/check.h"
#include "core/model/lead_time/refusal.h"
#include "core/model/lead_time/whole.h"

namespace neap::lead_time {

namespace {

constexpr std::int64_t scale = std::int64_t{1} << 20U;  // S
constexpr std::int64_t hours_learned = 336;             // two weeks
constexpr std::int64_t hours_kept = hours_learned + 1;  // the newest is not learned from yet
constexpr std::int64_t hours_needed = 24;
constexpr std::int64_t days_back = 7;

// Of hour `h`, when it has closed and is still known.
const Hour* hour_at(const GuardState& state, std::int64_t now, std::int64_t h) {
  const std::int64_t back = now - h;
  const auto kept = static_cast<std::int64_t>(state.hours.size());
  if (h < 0 || back < 1 || back > kept) return nullptr;
  return &state.hours[static_cast<std::size_t>(kept - back)];
}

// f: the upper median of the peaks around this hour of the last seven days.
std::optional<std::int64_t> usual_peak(const GuardSpec& spec, const GuardState& state) {
  const std::int64_t now = state.slot / spec.slots_per_hour();
  const std::int64_t target = (state.slot + spec.lead_slots()) / spec.slots_per_hour();
  std::vector<std::int64_t> peaks;
  for (std::int64_t day = 1; day <= days_back; ++day) {
    for (std::int64_t around = -1; around <= 1; ++around) {
      const Hour* hour = hour_at(state, now, target - hours_of_day * day + around);
      if (hour != nullptr && hour->peak) peaks.push_back(*hour->peak);
    }
  }
  if (peaks.empty()) return {};
  const auto middle = peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() / 2);
  std::nth_element(peaks.begin(), middle, peaks.end());
  return *middle;
}

void push_bounded(std::vector<std::int64_t>& values, std::int64_t value, std::int32_t most) {
  values.push_back(value);
  const auto excess = static_cast<std::ptrdiff_t>(values.size()) - most;
  if (excess > 0) values.erase(values.begin(), values.begin() + excess);
}

// B: the higher of what is expected, held for an hour; a raise takes the lead, a fall acts at once.
std::int64_t next_base(const GuardSpec& spec, GuardState& state) {
  const std::int64_t last = state.last.value_or(0);
  const auto usual = usual_peak(spec, state);
  push_bounded(state.raised,
               std::max<std::int64_t>(1, usual ? ceil_div(3 * last + *usual, 4) : last),
               spec.slots_per_hour() + 1);
  push_bounded(state.dwelling, *std::max_element(state.raised.begin(), state.raised.end()),
               spec.lead_slots() + 1);
  return *std::min_element(state.dwelling.begin(), state.dwelling.end());
}

std::int64_t excess_of(std::int64_t demand, std::int64_t base) {
  return ceil_div((demand - base) * scale, square_root(base * scale));
}

// q of the hour that opens, from the excesses of two weeks and from what has come of it so far.
void learn(const GuardSpec& spec, GuardState& state) {
  const auto kept = static_cast<std::int64_t>(state.hours.size());
  std::vector<std::int64_t> known;  // w
  for (std::int64_t h = std::max<std::int64_t>(0, kept - hours_kept); h + 1 < kept; ++h) {
    const auto& excess = state.hours[static_cast<std::size_t>(h)].excess;
    if (excess) known.push_back(*excess);
  }
  const auto m = static_cast<std::int64_t>(known.size());
  state.open.ready = m >= hours_needed;
  if (!state.open.ready) return;
  std::sort(known.begin(), known.end());
  const auto ranked = [&](std::int64_t rank) { return known[static_cast<std::size_t>(rank - 1)]; };
  const std::int64_t x = spec.violations_per_mille;
  const std::int64_t rank = ceil_div((1'000 - x) * (m + 1), 1'000);
  const std::int64_t spread =
      std::max<std::int64_t>(1, ranked(ceil_div(9 * m, 10)) - ranked(ceil_div(m, 10)));
  const Hour& outcome = state.hours[static_cast<std::size_t>(kept - 2)];
  if (outcome.ready && outcome.violated) {
    const std::int64_t missed = *outcome.violated ? 1'000 : 0;
    state.tracked =
        std::clamp(state.tracked + floor_div(spread * (missed - x), 4'000), -spread, 4 * spread);
  }
  state.quantile = ranked(std::min(rank, m)) + state.tracked + (rank > m ? spread : 0);
}

// C: a small fall is not worth a change.
std::int64_t derive(const GuardSpec& spec, const GuardState& state) {
  if (!state.ready()) return spec.devices;
  const std::int64_t margin = ceil_div(state.quantile * square_root(state.base * scale), scale);
  const std::int64_t next = std::min(spec.devices, std::max<std::int64_t>(1, state.base + margin));
  const bool was_ready = !state.hours.empty() && state.hours.back().ready;
  const bool falls_little = next < state.derived && 8 * next > 7 * state.derived;
  return was_ready && falls_little ? std::min(spec.devices, state.derived) : next;
}

void open_slot(const GuardSpec& spec, GuardState& state, std::int64_t floor) {
  state.base = next_base(spec, state);
  state.derived = derive(spec, state);
  state.guard = std::min(spec.devices, std::max(state.derived, floor));
}

void close_slot(const GuardSpec& spec, GuardState& state, std::int64_t demand) {
  NEAP_CHECK(demand >= 0 && demand <= most_devices);
  state.last = demand;
  Hour& open = state.open;
  open.peak = std::max(demand, open.peak.value_or(0));
  open.violated = open.violated.value_or(false) || demand > state.guard;
  // The first two hours have no base to speak of.
  if (state.slot / spec.slots_per_hour() < 2) return;
  const std::int64_t excess = excess_of(demand, state.base);
  open.excess = open.excess ? std::max(*open.excess, excess) : excess;
}

void close_hour(const GuardSpec& spec, GuardState& state) {
  state.hours.push_back(state.open);
  if (static_cast<std::int64_t>(state.hours.size()) > hours_kept) {
    state.hours.erase(state.hours.begin());
  }
  state.open = Hour();
  learn(spec, state);
}

}  // namespace

Result<void> check(const GuardSpec& spec) {
  if (spec.devices < 1 || spec.devices > most_devices) {
    return wrong("devices", "1 to " + std::to_string(most_devices), spec.devices);
  }
  if (spec.slot_seconds < shortest_slot_seconds || spec.slot_seconds > hour_seconds ||
      hour_seconds % spec.slot_seconds != 0) {
    return wrong("slot_seconds", "a divisor of 3600 from 60 to 3600", spec.slot_seconds);
  }
  if (spec.lead_seconds < 1 || spec.lead_seconds > hour_seconds) {
    return wrong("lead_seconds", "1 to 3600: beyond an hour the rule gains nothing",
                 spec.lead_seconds);
  }
  if (spec.violations_per_mille < 1 || spec.violations_per_mille > 999) {
    return wrong("violations_per_mille", "1 to 999", spec.violations_per_mille);
  }
  return {};
}

GuardState begin(const GuardSpec& spec, std::int64_t floor) {
  NEAP_CHECK(check(spec).has_value());
  GuardState state;
  open_slot(spec, state, floor);
  return state;
}

void advance(const GuardSpec& spec, GuardState& state, const ClosedSlot& closed) {
  if (closed.demand) close_slot(spec, state, *closed.demand);
  ++state.slot;
  if (state.slot % spec.slots_per_hour() == 0) close_hour(spec, state);
  open_slot(spec, state, closed.next_floor);
}

}  // namespace neap::lead_time
