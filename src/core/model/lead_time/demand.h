// What the guard is told of a slot: the demand of all services in devices, or that it is unknown;
// and what a calendar says (SPEC D4, POLICIES section 2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/lead_time/guard.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::lead_time {

// Calibration: so many devices serve so much, as whole replicas.
struct Capacity {
  std::int64_t micro_per_second = 1'000'000;  // that a replica serves within its objective
  std::int64_t devices = 1;                   // of a replica
};
// D: rounded up to whole replicas, at most most_devices. Rejected requests are offered too.
[[nodiscard]] std::int64_t devices_for(std::int64_t offered_micro_per_second,
                                       const Capacity& capacity);

// The guard of a pool is that of the sum, not the sum of guards. Where a service is unknown the
// sum is too.
[[nodiscard]] std::optional<std::int64_t> sum_of(
    std::span<const std::optional<std::int64_t>> services);

// Tells an outage of the metrics from little traffic: below a twentieth of the upper median of
// what was known within a day. When nothing was known for a day, what is told counts.
struct OutageState {
  std::int64_t slots = 0;                        // seen
  std::vector<std::optional<std::int64_t>> day;  // the last slots of a day, the newest last
  bool operator==(const OutageState&) const = default;
};
// `offered`, or nothing where it is unknown.
[[nodiscard]] std::optional<std::int64_t> unless_outage(const GuardSpec& spec, OutageState& state,
                                                        std::optional<std::int64_t> offered);

// A planned promotion. It holds one lead before it begins, so that devices that are lent are back.
struct Promotion {
  Time from, to;  // `to` is not part of it
  std::int64_t devices = 0;
  bool operator==(const Promotion&) const = default;
};
inline constexpr std::size_t most_promotions = 10'000;
[[nodiscard]] Result<void> check(const Promotion& promotion);
// The highest of those that hold in a part of the slot.
[[nodiscard]] std::int64_t floor_of(std::span<const Promotion> calendar, const GuardSpec& spec,
                                    Time slot_begin);

}  // namespace neap::lead_time
