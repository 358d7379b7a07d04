// Which days the plan of an hour should be made from (SPEC D5; docs/decisions/0024).
//
//   plan_days_bench TRACE.tgz
//
// Replicas are held as `scale.mode: tidal` does, by the slot: what the last slot needed with the
// headroom, and not less than a part of the plan for this hour and the next one. Printed are, for
// each choice of days, the replicas held for each one needed, and the part of the slots in which
// the demand was above what is held. The recorded traffic has two weeks of unknown weekdays, so all
// seven alignments of the week are tried. Longer traffic is generated (labelled so): fitted to the
// trace, once as it is, once with weekends of half the demand.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rules/tide.h"
#include "simulate/guard/year.h"
#include "trace/bytes.h"
#include "trace/rates.h"

namespace neap {
namespace {

constexpr std::int64_t day_slots = simulate::year_slots_per_day;
constexpr std::int64_t hour_slots = day_slots / 24;
constexpr std::int64_t peak = 200;  // replicas at the highest slot
constexpr std::int64_t headroom_percent = 11;
constexpr std::array<std::pair<const char*, PlanDays>, 3> choices = {
    {{"recent", PlanDays::recent}, {"kind", PlanDays::kind}, {"weekday", PlanDays::weekday}}};

using Demand = std::vector<std::optional<std::int64_t>>;

// Of the demand of other days, so much is held: as by default, and as in the lending bench.
constexpr std::array<std::int64_t, 2> plan_percents = {100, 70};

struct Held {
  std::int64_t slots = 0, needed = 0, held = 0, short_slots = 0;
};

// The traffic begins `later` days after the first of the epoch: on another day of the week.
struct Rule {
  PlanDays days{};
  std::int64_t plan_percent = 100;
};

void replay(const Demand& demand, Rule rule, std::int64_t later, std::int64_t from, Held& into) {
  DayCurve curve;
  curve.hour = 24 * later;
  const auto slots = static_cast<std::int64_t>(demand.size());
  for (std::int64_t s = 0; s < slots; ++s) {
    const std::int64_t hour = 24 * later + s / hour_slots;
    if (hour != curve.hour) {
      curve.closed.push_back(curve.open);
      curve.open.reset();
      curve.hour = hour;
      const auto surplus = static_cast<std::ptrdiff_t>(curve.closed.size()) -
                           static_cast<std::ptrdiff_t>(hours_kept_of_weeks);
      if (surplus > 0) curve.closed.erase(curve.closed.begin(), curve.closed.begin() + surplus);
    }
    const auto& known = demand[static_cast<std::size_t>(s)];
    const auto& last = demand[static_cast<std::size_t>(std::max<std::int64_t>(0, s - 1))];
    if (s >= from && known && last) {
      const Time now(hour * hours(1).value);
      const std::int64_t planned = std::max(planned_replicas(curve, now, rule.days),
                                            planned_replicas(curve, now + minutes(10), rule.days));
      const std::int64_t held = std::max((*last * (100 + headroom_percent) + 99) / 100,
                                         (planned * rule.plan_percent + 99) / 100);
      ++into.slots;
      into.needed += *known;
      into.held += held;
      into.short_slots += *known > held ? 1 : 0;
    }
    if (known) curve.open = std::max(curve.open.value_or(0), *known);
  }
}

Demand in_replicas(const std::vector<std::optional<std::int64_t>>& rates) {
  std::int64_t most = 1;
  for (const auto& rate : rates) most = std::max(most, rate.value_or(0));
  Demand out;
  for (const auto& rate : rates) {
    if (!rate || *rate == 0) {
      out.emplace_back();
    } else {
      out.emplace_back((*rate * peak + most - 1) / most);
    }
  }
  return out;
}

void print(const std::string& traffic, std::int64_t plan_percent, const char* days,
           const Held& held) {
  std::printf(
      "%s, plan %lld %%, %s: held %.3f per replica needed, short in %.2f %% of %lld slots\n",
      traffic.c_str(), static_cast<long long>(plan_percent), days,
      static_cast<double>(held.held) / static_cast<double>(held.needed),
      100.0 * static_cast<double>(held.short_slots) / static_cast<double>(held.slots),
      static_cast<long long>(held.slots));
}

int recorded(const char* path) {
  auto bytes = trace::open_bytes(path);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", to_string(bytes.error()).c_str());
    return 1;
  }
  const auto windows = trace::read_servegen(std::move(*bytes));
  if (!windows) {
    std::fprintf(stderr, "%s\n", to_string(windows.error()).c_str());
    return 1;
  }
  std::vector<std::optional<std::int64_t>> rates;
  for (const trace::RateWindow& window : *windows) rates.emplace_back(window.micro_per_second);
  const Demand demand = in_replicas(rates);
  for (const std::int64_t percent : plan_percents) {
    for (const auto& [name, days] : choices) {
      Held all;
      for (std::int64_t later = 0; later < 7; ++later) {
        replay(demand, {days, percent}, later, 7 * day_slots, all);
      }
      print("recorded", percent, name, all);
    }
  }
  return 0;
}

std::vector<Demand> drawn(std::int64_t weekend_percent) {
  constexpr std::int64_t days = 84;
  std::vector<simulate::Change> changes;
  for (std::int64_t day = 0; day < days; ++day) {
    if ((day + 3) % 7 < 5) continue;  // day 0 of the epoch was a Thursday
    changes.push_back({day * day_slots, (day + 1) * day_slots - 1, weekend_percent});
  }
  std::vector<Demand> out;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    out.push_back(in_replicas(simulate::draw_year({seed, days, 18}, changes)));
  }
  return out;
}

void generated(const std::string& label, std::int64_t weekend_percent) {
  const std::vector<Demand> demands = drawn(weekend_percent);
  for (const std::int64_t percent : plan_percents) {
    for (const auto& [name, days] : choices) {
      Held all;
      for (const Demand& demand : demands) replay(demand, {days, percent}, 0, 28 * day_slots, all);
      print(label, percent, name, all);
    }
  }
}

}  // namespace
}  // namespace neap

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: plan_days_bench TRACE.tgz\n");
    return 2;
  }
  if (const int status = neap::recorded(argv[1]); status != 0) return status;
  neap::generated("generated, all days alike", 100);
  neap::generated("generated, weekends of half", 50);
  return 0;
}
