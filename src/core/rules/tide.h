// Inference follows the tide (SPEC D4, D5; POLICIES 2 and 3): replicas of a service by the demand
// of now and of the same hour of other days, and the devices that all of them may need.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

// Names the field that is wrong: slot, lead, violations, idle_cost, shortage_cost or calendar.
[[nodiscard]] Result<void> check(const TideSpec& tide);

[[nodiscard]] const ScaleSpec& scale_of(const PoolState& state, const ServiceState& service);

// Replicas whose slots for requests are all in use by `in_use` of them.
[[nodiscard]] std::int64_t replicas_for(const ServiceState& service, std::int64_t in_use);
// Its replicas that serve are fewer than the demand of now needs: devices are needed at once.
[[nodiscard]] bool is_short(const PoolState& state, const ServiceState& service, Time now);

// What the hour of `at` needed on other days: the upper median; 0 when none is known. Which days:
// PlanDays; the kind and the day of the week are those in UTC. Where less than three days of the
// kind are known, or less than four of the weekday, the next coarser choice.
[[nodiscard]] std::int64_t planned_replicas(const DayCurve& curve, Time at,
                                            PlanDays days = PlanDays::recent);
// So many replicas that four days in five, of those that the plan is made from, needed no more from
// `from` to `until`; nothing where less than five are known.
[[nodiscard]] std::optional<std::int64_t> usual_need(const DayCurve& curve, Time from, Time until,
                                                     PlanDays days);
// What the load is expected to rise by in the next `trend`: as much as it rose in the last one; 0
// where it fell or less than two samples are known. In requests at once, as in_use.
[[nodiscard]] std::int64_t expected_rise(const ServiceState& service, Micros trend);
// Replicas within the service's bounds: for the demand of now with its headroom and the rise that
// is expected, and not fewer than a part of the plan (scale.plan) for now and one lead from now.
// Nothing: the demand is not known, or stale.
[[nodiscard]] std::optional<std::int32_t> tidal_target(const PoolState& state,
                                                       const ServiceState& service, Time now);

// Devices beside inference_guard_min that are lent to releasable tasks alone: elastic_buffer, or
// what the derived guard and its buffer claim beyond the minimum where that is more.
[[nodiscard]] std::int64_t lendable_wanted(const PoolState& state);

// Hours of known demand that the derived guard has learned from; nothing once it holds, or where
// none is derived.
[[nodiscard]] std::optional<std::int64_t> hours_learned(const PoolState& state);

// ---- for apply -------------------------------------------------------------------------------

// A sample of a service's load.
void note_tide(const PoolState& state, ServiceState& service, std::int64_t in_use);
// True when the devices that are claimed are others than before.
bool close_slots(PoolState& state, const DemandCounted& counted);

}  // namespace neap
