#include "core/model/lead_time/elastic.h"

#include <algorithm>
#include <string>

#include "core/model/check.h"
#include "core/model/lead_time/refusal.h"

namespace neap::lead_time {

Result<void> check(const Costs& costs) {
  const std::string expected = "1 to " + std::to_string(highest_cost);
  if (costs.idle < 1 || costs.idle > highest_cost) return wrong("idle_cost", expected, costs.idle);
  if (costs.shortage < 1 || costs.shortage > highest_cost) {
    return wrong("shortage_cost", expected, costs.shortage);
  }
  return {};
}

std::int32_t paying_violations(const Costs& costs) {
  NEAP_CHECK(check(costs).has_value());
  const std::int64_t per_mille = 1'000 * costs.idle / (costs.idle + costs.shortage);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(per_mille, 1, 999));
}

GuardSpec ElasticSpec::with_buffer() const {
  GuardSpec spec = guard;
  spec.violations_per_mille = paying_per_mille;
  return spec;
}

Result<void> check(const ElasticSpec& spec) {
  if (auto done = check(spec.guard); !done) return done;
  if (spec.paying_per_mille < 1 || spec.paying_per_mille > 999) {
    return wrong("paying_per_mille", "1 to 999", spec.paying_per_mille);
  }
  return {};
}

ElasticState begin(const ElasticSpec& spec, std::int64_t floor) {
  return {begin(spec.guard, floor), begin(spec.with_buffer(), floor)};
}

void advance(const ElasticSpec& spec, ElasticState& state, const ClosedSlot& closed) {
  advance(spec.guard, state.guard, closed);
  advance(spec.with_buffer(), state.buffered, closed);
}

Claim claim_of(const ElasticSpec& spec, const ElasticState& state) {
  Claim claim{state.guard.guard, 0, state.guard.ready()};
  if (spec.paying_per_mille < spec.guard.violations_per_mille) {
    claim.buffer = std::max<std::int64_t>(0, state.buffered.guard - claim.guard);
  }
  return claim;
}

}  // namespace neap::lead_time
