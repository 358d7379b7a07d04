// What the pool remembers of the traffic of its services: the day curve of each, from which its
// replicas are planned, and of all together the guard that follows from it (SPEC D4, D5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/lead_time/demand.h"
#include "core/model/lead_time/elastic.h"
#include "core/model/units.h"

namespace neap {

// The guard derived from traffic. Devices between what inference has and what it may need are lent
// to those alone who leave within the lead.
struct TideSpec {
  bool derive = false;
  Micros slot = minutes(5);                // divides an hour
  Micros lead = minutes(10);               // until lent devices are back; at most an hour
  std::int32_t violations_per_mille = 10;  // x: hours in which the demand may exceed the guard
  lead_time::Costs costs;                  // of the buffer beside it
  std::vector<lead_time::Promotion> calendar;
  bool operator==(const TideSpec&) const = default;
};

// Of the epoch.
[[nodiscard]] constexpr std::int64_t hour_of(Time at) { return at.us / hours(1).value; }

// Highest demand of each hour, in replicas; the newest last. Nothing: it was not known.
struct DayCurve {
  std::int64_t hour = 0;  // of the epoch, the open one
  std::optional<std::int64_t> open;
  std::vector<std::optional<std::int64_t>> closed;
};
inline constexpr std::size_t hours_kept = 8 * 24;
inline constexpr std::size_t hours_kept_of_weeks = 29 * 24;  // where plans are made of weeks

// A sample of a service's load, kept as long as the trend looks back.
struct LoadSample {
  Time at;
  std::int64_t in_use = 0;
};
inline constexpr std::size_t samples_kept = 16;

// Of the pool: what was demanded in each slot, and the guard.
struct TideBook {
  bool begun = false;
  Time slot_begin;
  lead_time::OutageState outage;
  lead_time::ElasticState elastic;
};

}  // namespace neap
