#include "config/fairness.h"

#include <algorithm>
#include <string>

namespace neap::config {

namespace {
constexpr std::int64_t arrivals_max = 1'000'000;
}  // namespace

void read_fairness(Fields fairness, PoolSpec& pool) {
  FairnessSpec& spec = pool.fairness;
  fairness.whole("lane", spec.lane, {0, arrivals_max});
  fairness.duration("lane_within", spec.lane_within, seconds(1), hours(24));
  fairness.duration("longest_bound", spec.longest_bound, minutes(1), a_year);
  fairness.word("deadline_tier", spec.deadline_tier);
  fairness.part("promoted_max", spec.promoted_max);
  const std::int64_t others = std::int64_t{pool.inference_guard_min} + pool.elastic_buffer;
  if (pool.total_gpus > 0 && spec.lane > 0 && others + spec.lane > pool.total_gpus) {
    fairness.refuse("lane", std::to_string(spec.lane) + " devices beside guard and buffer (" +
                                std::to_string(others) + ") are more than total_gpus (" +
                                std::to_string(pool.total_gpus) + ")");
  }
  if (spec.lane > 0 && !pool.preempt.enabled) {
    fairness.refuse("lane",
                    "needs preempt.enabled: nobody would be asked to leave the lane; expected 0");
  }
  const auto named = std::find_if(pool.tiers.begin(), pool.tiers.end(), [&](const TierSpec& tier) {
    return tier.name == spec.deadline_tier;
  });
  if (!spec.deadline_tier.empty() && named == pool.tiers.end()) {
    fairness.refuse("deadline_tier", "names no tier of priority_tiers");
  } else if (named != pool.tiers.end() && named->purpose != Purpose::batch) {
    fairness.refuse("deadline_tier", "is no batch tier; expected one, as batch tasks go on in it");
  }
  fairness.close();
}

void read_envelope(Fields envelope, Envelope& into) {
  envelope.whole("burst", into.burst, {1, arrivals_max},
                 envelope.present() ? Need::required : Need::optional);
  envelope.whole("per_hour", into.per_hour, {0, arrivals_max});
  envelope.close();
}

}  // namespace neap::config
