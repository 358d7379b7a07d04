// D6: the section fairness and envelopes of tiers; G5: faults name their place.
#include "config/fairness.h"

#include <gtest/gtest.h>

#include <string>

#include "config/pool_file.h"

namespace neap::config::fairness_test {
namespace {

constexpr std::string_view whole =
    R"(pool: {total_gpus: 64, inference_guard_min: 16, elastic_buffer: 4}
priority_tiers:
  - {name: infer_core, weight: 100}
  - {name: train_deadline_near, weight: 80, wait: 1h, envelope: {burst: 8, per_hour: 2}}
  - {name: train_normal, weight: 40}
fairness:
  lane: 8
  lane_within: 20min
  longest_bound: 48h
  deadline_tier: train_deadline_near
  promoted_max: 20%
)";

std::string refused(std::string_view text) {
  Problems problems("pool.yaml");
  EXPECT_FALSE(parse_pool_file(text, problems));
  return problems.text();
}

TEST(Fairness, D6_IsReadAndIsOffWhereItIsNotNamed) {
  Problems problems("pool.yaml");
  const auto file = parse_pool_file(whole, problems);
  ASSERT_TRUE(file) << problems.text();
  const FairnessSpec& fairness = file->spec.fairness;
  EXPECT_EQ(fairness.lane, 8);
  EXPECT_EQ(fairness.lane_within, minutes(20));
  EXPECT_EQ(fairness.longest_bound, hours(48));
  EXPECT_EQ(fairness.deadline_tier, "train_deadline_near");
  EXPECT_EQ(fairness.promoted_max, Ppm(200'000));
  EXPECT_EQ(file->spec.tiers[1].envelope.burst, 8);
  EXPECT_EQ(file->spec.tiers[1].envelope.per_hour, 2);
  const auto plain = parse_pool_file("pool: {}\n", problems);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->spec.fairness.lane, 0);
  EXPECT_TRUE(plain->spec.fairness.deadline_tier.empty());
}

TEST(Fairness, G5_RefusesEachBadValueWithItsPlace) {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"pool: {}\nfairness: {lane: -1}\n", "pool.yaml:2: fairness.lane: \"-1\" is negative"},
      {"pool: {total_gpus: 8, inference_guard_min: 4}\nfairness: {lane: 5}\n",
       "fairness.lane: 5 devices beside guard and buffer (4) are more than total_gpus (8)"},
      {"pool: {}\npreempt: {enabled: false}\nfairness: {lane: 4}\n", "needs preempt.enabled"},
      {"pool: {}\nfairness: {deadline_tier: gold}\n", "fairness.deadline_tier: names no tier"},
      {"pool: {}\nfairness: {deadline_tier: inference}\n", "is no batch tier"},
      {"pool: {}\nfairness: {promoted_max: 120%}\n", "is over 100%"},
      {"pool: {}\nfairness: {lanes: 4}\n", "did you mean \"lane\"?"},
      {"pool: {}\npriority_tiers: [{name: a, weight: 1, envelope: {per_hour: 1}}]\n",
       "priority_tiers[0].envelope.burst: is missing"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(refused(row.text).find(row.expected), std::string::npos) << refused(row.text);
  }
}

}  // namespace
}  // namespace neap::config::fairness_test
