// What the lead-time guard would have done on recorded demand: each slot's claim from what was
// before it alone, held against what came (SPEC D4, POLICIES section 2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/lead_time/demand.h"
#include "core/model/lead_time/elastic.h"
#include "core/model/result.h"

namespace neap::simulate {

using SlotDemand = std::vector<std::optional<std::int64_t>>;  // devices by slot; nothing: unknown

// The demand that is the highest rate's part of so many devices: for traffic without a
// calibration. Outages become unknown.
[[nodiscard]] SlotDemand scaled_demand(const lead_time::GuardSpec& spec,
                                       std::span<const std::optional<std::int64_t>> offered,
                                       std::int64_t peak_devices);
// By what a replica serves.
[[nodiscard]] SlotDemand calibrated_demand(const lead_time::GuardSpec& spec,
                                           std::span<const std::optional<std::int64_t>> offered,
                                           const lead_time::Capacity& capacity);
// Slot by slot; as long as the shortest.
[[nodiscard]] SlotDemand summed_demand(std::span<const SlotDemand> services);

struct Slots {
  std::int64_t first = 0;
  std::int64_t last = 0;  // is one of them
  bool operator==(const Slots&) const = default;
};

struct BacktestSpec {
  lead_time::ElasticSpec rule;
  std::vector<lead_time::Promotion> calendar;  // from the first slot's begin at 0
  std::optional<Slots> scored;                 // without: from the first slot with a derived guard
};

struct Backtest {
  std::vector<lead_time::Claim> claims;  // of each slot
  Slots scored;
  std::int64_t scored_slots = 0;  // known ones
  std::int64_t scored_hours = 0;  // with a known slot
  std::int64_t violated_hours = 0;
  std::int64_t violated_slots = 0;
  std::int64_t violated_with_buffer = 0;  // hours, with guard and buffer together
  std::int64_t unknown_slots = 0;         // of all
  std::int64_t sum_c = 0;                 // of the guard, over all scored slots
  std::int64_t sum_buffer = 0;
  std::int64_t sum_d = 0;          // of the demand, over all slots
  std::int64_t scored_d = 0;       // over those that are scored
  std::int64_t idle = 0;           // guard above demand, over the known scored ones
  std::int64_t lends_nothing = 0;  // scored slots whose guard is the whole pool
  std::int64_t changes = 0;        // of the guard, from a scored slot's predecessor to it
  std::int64_t worst_week = 0;     // violated hours in the worst 168 scored ones
  std::optional<std::int64_t> first_lend_slot;

  [[nodiscard]] std::int64_t idle_ppm() const;  // of the demand
  [[nodiscard]] std::int64_t violated_ppm() const;
  [[nodiscard]] std::int64_t changes_micro_per_day(const lead_time::GuardSpec& spec) const;
};

// Refuses scored slots that there are not, and settings out of range.
[[nodiscard]] Result<Backtest> backtest(const BacktestSpec& spec, const SlotDemand& demand);

// Violated hours that so many hours may have by chance: the stated part and two standard errors.
[[nodiscard]] std::int64_t violations_by_chance(std::int64_t hours, std::int32_t per_mille);
// Three: more than that in a week says that the traffic is no longer what was learned from.
[[nodiscard]] bool has_drifted(const Backtest& result, std::int32_t per_mille);

// Where the true rate lies with 95 % confidence (Wilson 1927), hours taken as independent.
struct Interval {
  std::int64_t low_ppm = 0;
  std::int64_t high_ppm = 1'000'000;
};
[[nodiscard]] Interval rate_interval(std::int64_t violated, std::int64_t hours);
// What has to be said wherever a rate is shown: what so many hours can show, and what they cannot.
[[nodiscard]] std::string confidence_note(const Backtest& result, std::int32_t per_mille);

}  // namespace neap::simulate
