// The guard with its elastic buffer: a second instance of the rule at the rate of violations that
// pays, and the devices between the two (SPEC D4, POLICIES section 2). Only what can leave within
// one slot may use the buffer.
#pragma once

#include <cstdint>

#include "core/model/lead_time/guard.h"

namespace neap::lead_time {

// What a device costs in a slot in which it idles, and in one in which it is missed; any unit.
struct Costs {
  std::int64_t idle = 1;
  std::int64_t shortage = 199;
  bool operator==(const Costs&) const = default;
};
inline constexpr std::int64_t highest_cost = 1'000'000'000'000;
[[nodiscard]] Result<void> check(const Costs& costs);
// y = idle / (idle + shortage) in 1/1000, rounded down, at least 1.
[[nodiscard]] std::int32_t paying_violations(const Costs& costs);

struct ElasticSpec {
  GuardSpec guard;                    // at x
  std::int32_t paying_per_mille = 5;  // y

  [[nodiscard]] GuardSpec with_buffer() const;
  bool operator==(const ElasticSpec&) const = default;
};
[[nodiscard]] Result<void> check(const ElasticSpec& spec);

struct ElasticState {
  GuardState guard;     // at x
  GuardState buffered;  // at y
  bool operator==(const ElasticState&) const = default;
};

// What holds in the open slot.
struct Claim {
  std::int64_t guard = 0;
  std::int64_t buffer = 0;  // above the guard; 0 where y >= x
  bool ready = false;       // false: nothing is lent
  bool operator==(const Claim&) const = default;
};

[[nodiscard]] ElasticState begin(const ElasticSpec& spec, std::int64_t floor = 0);
void advance(const ElasticSpec& spec, ElasticState& state, const ClosedSlot& closed);
[[nodiscard]] Claim claim_of(const ElasticSpec& spec, const ElasticState& state);

}  // namespace neap::lead_time
