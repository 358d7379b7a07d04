// D4: the pieces of the lead-time guard, its limits and its start.
#include "core/model/lead_time/guard.h"

#include <gtest/gtest.h>

#include "core/model/lead_time/demand.h"
#include "core/model/lead_time/elastic.h"
#include "core/model/lead_time/whole.h"

namespace neap::lead_time {
namespace {

static_assert(floor_div(-1, 4'000) == -1 && floor_div(-4'000, 4'000) == -1);
static_assert(floor_div(7, 2) == 3 && floor_div(-7, 2) == -4);
static_assert(ceil_div(7, 2) == 4 && ceil_div(-7, 2) == -3 && ceil_div(8, 2) == 4);
static_assert(scaled_up(INT64_MAX, 100, INT64_MAX) == 100 && scaled_up(1, 1, 3) == 1);

GuardSpec ten_minutes() { return {100, 600, 600, 10}; }

TEST(LeadTimeWhole, D4_square_roots_are_rounded_down) {
  for (std::int64_t root = 0; root < 3'000'000; root += 977) {
    EXPECT_EQ(square_root(root * root), root);
    EXPECT_EQ(square_root(root * root + 2 * root), root);
    EXPECT_EQ(square_root(root * root + 2 * root + 1), root + 1);
  }
  EXPECT_EQ(square_root(INT64_MAX), 3'037'000'499);
}

TEST(LeadTimeGuard, D4_a_wrong_setting_is_named_with_what_was_expected) {
  const struct {
    GuardSpec spec;
    const char* message;
  } cases[] = {
      {{0, 600, 600, 10}, "devices: expected 1 to 1000000, not 0"},
      {{1'000'001, 600, 600, 10}, "devices: expected 1 to 1000000, not 1000001"},
      {{100, 30, 600, 10}, "slot_seconds: expected a divisor of 3600 from 60 to 3600, not 30"},
      {{100, 420, 600, 10}, "slot_seconds: expected a divisor of 3600 from 60 to 3600, not 420"},
      {{100, 7'200, 600, 10}, "slot_seconds: expected a divisor of 3600 from 60 to 3600, not 7200"},
      {{100, 600, 3'601, 10},
       "lead_seconds: expected 1 to 3600: beyond an hour the rule gains nothing, not 3601"},
      {{100, 600, 0, 10},
       "lead_seconds: expected 1 to 3600: beyond an hour the rule gains nothing, not 0"},
      {{100, 600, 600, 0}, "violations_per_mille: expected 1 to 999, not 0"},
      {{100, 600, 600, 1'000}, "violations_per_mille: expected 1 to 999, not 1000"},
  };
  for (const auto& [spec, message] : cases) {
    const auto checked = check(spec);
    ASSERT_FALSE(checked) << message;
    EXPECT_EQ(to_string(checked.error()), message);
  }
  for (const std::int32_t slot : {60, 300, 600, 900, 1'800, 3'600}) {
    EXPECT_TRUE(check(GuardSpec{100, slot, 3'600, 999})) << slot;
  }
}

// 24 hours to learn from; the first two have no excess and the newest is not learned from.
TEST(LeadTimeGuard, D4_a_cold_start_lends_nothing_for_27_hours) {
  for (const std::int32_t slot : {60, 300, 600, 3'600}) {
    GuardSpec spec = ten_minutes();
    spec.slot_seconds = slot;
    GuardState state = begin(spec);
    while (!state.ready()) {
      EXPECT_EQ(state.guard, 100);
      ASSERT_LT(state.slot, 28 * spec.slots_per_hour());
      advance(spec, state, {10});
    }
    EXPECT_EQ(state.slot, 27 * spec.slots_per_hour());
    EXPECT_EQ(state.guard, 11) << "what is steady needs its demand and the least margin";
  }
}

TEST(LeadTimeGuard, D4_hours_without_metrics_are_not_learned_from) {
  GuardState state = begin(ten_minutes());
  for (int s = 0; s < 10 * 24 * 6; ++s) advance(ten_minutes(), state, {});
  EXPECT_FALSE(state.ready());
  EXPECT_EQ(state.guard, 100);
  EXPECT_FALSE(state.hours.back().violated) << "unknown is neither a violation nor none";
}

TEST(LeadTimeGuard, D4_a_raise_takes_the_lead_and_a_fall_waits_an_hour) {
  GuardSpec spec = ten_minutes();
  spec.lead_seconds = 1'800;
  GuardState state = begin(spec);
  for (int s = 0; s < 48 * 6; ++s) advance(spec, state, {20});
  EXPECT_EQ(state.base, 20);
  std::vector<std::int64_t> bases;
  for (int s = 0; s < 12; ++s) {
    advance(spec, state, {s == 0 ? 60 : 20});  // one slot at 60: (3 * 60 + 20) / 4 = 50
    bases.push_back(state.base);
  }
  const std::vector<std::int64_t> expected = {20, 20, 20, 50, 50, 50, 50, 20, 20, 20, 20, 20};
  EXPECT_EQ(bases, expected);
}

TEST(LeadTimeGuard, D4_the_pool_may_shrink_and_grow) {
  GuardSpec spec = ten_minutes();
  GuardState state = begin(spec);
  for (int s = 0; s < 48 * 6; ++s) advance(spec, state, {80});
  EXPECT_GE(state.guard, 80);
  spec.devices = 40;
  advance(spec, state, {80});
  EXPECT_EQ(state.guard, 40) << "never more than there are";
  spec.devices = 200;
  for (int s = 0; s < 24 * 6; ++s) advance(spec, state, {80});
  EXPECT_GE(state.guard, 80);
}

TEST(LeadTimeGuard, D4_a_copy_goes_on_as_the_original) {
  GuardState state = begin(ten_minutes());
  for (int s = 0; s < 400; ++s) advance(ten_minutes(), state, {(s * 7) % 50});
  GuardState copy = state;
  for (int s = 0; s < 400; ++s) {
    advance(ten_minutes(), state, {(s * 11) % 70});
    advance(ten_minutes(), copy, {(s * 11) % 70});
  }
  EXPECT_EQ(copy, state);
}

TEST(LeadTimeGuard, D4_memory_is_bounded) {
  GuardSpec spec = ten_minutes();
  spec.slot_seconds = 60;
  spec.lead_seconds = 3'600;
  GuardState state = begin(spec);
  for (int s = 0; s < 30 * 24 * 60; ++s) advance(spec, state, {s % 90});
  EXPECT_EQ(state.hours.size(), 337U);
  EXPECT_EQ(state.raised.size(), 61U);
  EXPECT_EQ(state.dwelling.size(), 61U);
}

// With the most devices and the widest swings all products stay within 64 bits (the sanitizers
// would say so).
TEST(LeadTimeGuard, D4_the_largest_numbers_do_not_overflow) {
  const GuardSpec spec{most_devices, 600, 600, 1};
  GuardState state = begin(spec);
  for (int s = 0; s < 600 * 6; ++s) {
    const bool up = (s / 6) % 25 == 0;
    advance(spec, state, {up ? most_devices : 0});
    ASSERT_GE(state.guard, 1);
    ASSERT_LE(state.guard, most_devices);
  }
}

TEST(LeadTimeElastic, D4_the_buffer_is_what_a_rarer_violation_asks_for_beyond_the_guard) {
  EXPECT_EQ(paying_violations({1, 199}), 5);
  EXPECT_EQ(paying_violations({1, 1'000'000}), 1);
  EXPECT_EQ(paying_violations({5, 1}), 833);
  ElasticSpec spec{{100, 600, 600, 100}, 5};
  ElasticSpec costly = spec;
  costly.paying_per_mille = 100;  // y = x
  ElasticState state = begin(spec);
  ElasticState without = begin(costly);
  EXPECT_EQ(claim_of(spec, state), (Claim{100, 0, false}));
  std::int64_t buffers = 0;
  for (int s = 0; s < 14 * 24 * 6; ++s) {
    const ClosedSlot closed{20 + (s * 37) % 11 + (s % 400 == 399 ? 30 : 0)};
    advance(spec, state, closed);
    advance(costly, without, closed);
    const Claim claim = claim_of(spec, state);
    buffers += claim.buffer;
    EXPECT_EQ(claim.guard + claim.buffer, std::max(state.guard.guard, state.buffered.guard));
    EXPECT_EQ(claim_of(costly, without).buffer, 0);
  }
  EXPECT_GT(buffers, 1'000);
}

TEST(LeadTimeElastic, D4_wrong_costs_and_rates_are_named) {
  EXPECT_EQ(to_string(check(Costs{0, 1}).error()), "idle_cost: expected 1 to 1000000000000, not 0");
  EXPECT_EQ(to_string(check(Costs{1, -4}).error()),
            "shortage_cost: expected 1 to 1000000000000, not -4");
  EXPECT_EQ(to_string(check(ElasticSpec{ten_minutes(), 0}).error()),
            "paying_per_mille: expected 1 to 999, not 0");
  EXPECT_TRUE(check(ElasticSpec{ten_minutes(), 999}));
}

TEST(LeadTimeDemand, D4_demand_is_whole_replicas) {
  EXPECT_EQ(devices_for(0, {1'000'000, 2}), 0);
  EXPECT_EQ(devices_for(1, {1'000'000, 2}), 2);
  EXPECT_EQ(devices_for(1'000'000, {1'000'000, 2}), 2);
  EXPECT_EQ(devices_for(1'000'001, {1'000'000, 2}), 4);
  EXPECT_EQ(devices_for(INT64_MAX, {1, 8}), most_devices);
}

TEST(LeadTimeDemand, D4_services_are_summed_and_one_unknown_makes_the_sum_unknown) {
  using Services = std::vector<std::optional<std::int64_t>>;
  EXPECT_EQ(sum_of(Services{}), 0);
  EXPECT_EQ(sum_of(Services{3, 4}), 7);
  EXPECT_EQ(sum_of(Services{3, std::nullopt}), std::nullopt);
  EXPECT_EQ(sum_of(Services{INT64_MAX, INT64_MAX}), most_devices);
}

TEST(LeadTimeDemand, D4_a_twentieth_of_the_day_is_an_outage) {
  OutageState state;
  for (int s = 0; s < 6; ++s) EXPECT_EQ(unless_outage(ten_minutes(), state, 0), 0) << "too early";
  for (int s = 0; s < 144; ++s) EXPECT_EQ(unless_outage(ten_minutes(), state, 101), 101);
  EXPECT_EQ(unless_outage(ten_minutes(), state, 5), std::nullopt) << "5 * 20 < 101";
  EXPECT_EQ(unless_outage(ten_minutes(), state, 6), 6);
  EXPECT_EQ(unless_outage(ten_minutes(), state, {}), std::nullopt);
  int unknown = 0;
  while (!unless_outage(ten_minutes(), state, 0)) ++unknown;
  EXPECT_EQ(unknown, 143) << "after a day of silence the service has ended";
  EXPECT_LE(state.day.size(), 144U);
}

TEST(LeadTimeDemand, D4_a_promotion_raises_the_guard_from_one_lead_before_it) {
  const GuardSpec spec = ten_minutes();
  const Time noon = Time(0) + hours(60);
  const std::vector<Promotion> calendar = {{noon, noon + hours(2), 70},
                                           {noon + hours(1), noon + hours(2), 90}};
  EXPECT_EQ(floor_of(calendar, spec, noon - minutes(20)), 0);
  EXPECT_EQ(floor_of(calendar, spec, noon - minutes(19)), 70);
  EXPECT_EQ(floor_of(calendar, spec, noon + minutes(110)), 90);
  EXPECT_EQ(floor_of(calendar, spec, noon + hours(2)), 0);
  EXPECT_EQ(to_string(check(Promotion{noon, noon, 1}).error()), "to: expected a time after `from`");
  EXPECT_EQ(to_string(check(Promotion{noon, noon + hours(1), 0}).error()),
            "devices: expected 1 to 1000000, not 0");

  GuardState state = begin(spec);
  std::int64_t highest = 0;
  for (int s = 0; s < 70 * 6; ++s) {
    const Time next = Time(0) + minutes(10) * (s + 1);
    advance(spec, state, {10, floor_of(calendar, spec, next)});
    if (next < noon - minutes(10)) continue;
    highest = std::max(highest, state.guard);
    const bool first_hour = next >= noon && next < noon + minutes(40);
    EXPECT_TRUE(!first_hour || state.guard == 70) << state.guard;
    const bool over = next >= noon + hours(2);
    EXPECT_TRUE(!over || state.guard == 11) << "a floor leaves nothing behind: " << state.guard;
  }
  EXPECT_EQ(highest, 90);
}

}  // namespace
}  // namespace neap::lead_time
