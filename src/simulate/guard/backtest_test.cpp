// D4: the lead-time guard on the recorded fortnight, figure by figure as POLICIES section 2 gives
// them, and on traffic that it was not made on.
#include "simulate/guard/backtest.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "simulate/guard/testing/recorded_demand.h"

namespace neap::simulate::backtest_test {
namespace {

using testing::Recorded;

constexpr Slots second_week{1'008, 2'015};

BacktestSpec spec_at(std::int32_t per_mille, std::optional<Slots> scored = second_week) {
  return {{{100, 600, 600, per_mille}, 5}, {}, scored};
}

TEST(GuardBacktest, D4_the_acceptance_table_comes_out_exactly) {
  const auto recorded = Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const SlotDemand demand = scaled_demand(spec_at(10).rule.guard, recorded->offered, 100);
  ASSERT_EQ(demand.size(), 2'016U);
  const struct {
    std::int32_t per_mille;
    std::int64_t violated, gate, idle_gate_ppm, sum_c;
  } table[] = {{10, 4, 4, 1'080'000, 69'691},
               {20, 6, 6, 850'000, 62'218},
               {50, 11, 13, 580'000, 53'287},
               {100, 22, 24, 490'000, 50'422}};
  for (const auto& row : table) {
    const auto result = backtest(spec_at(row.per_mille), demand);
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ(result->sum_c, row.sum_c) << row.per_mille;
    EXPECT_EQ(result->violated_hours, row.violated) << row.per_mille;
    EXPECT_LE(result->violated_hours, row.gate);
    EXPECT_LE(result->idle_ppm(), row.idle_gate_ppm);
    EXPECT_EQ(result->scored_hours, 167);
    EXPECT_EQ(result->sum_d, 62'012);
    EXPECT_EQ(result->unknown_slots, 37);
    EXPECT_EQ(result->first_lend_slot, 162);
    const std::int64_t changes = result->changes_micro_per_day(spec_at(10).rule.guard);
    EXPECT_LE(changes, 32'000'000);
    std::printf(
        "acceptance x=%d: violated %lld of %lld, idle %.3f, sum C %lld, changes %.1f a day\n",
        row.per_mille, static_cast<long long>(result->violated_hours),
        static_cast<long long>(result->scored_hours), static_cast<double>(result->idle_ppm()) / 1e6,
        static_cast<long long>(result->sum_c), static_cast<double>(changes) / 1e6);
  }
}

// The idle ratio to three digits, as the table has it.
TEST(GuardBacktest, D4_the_idle_reserve_is_that_of_the_table) {
  const auto recorded = Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const SlotDemand demand = scaled_demand(spec_at(10).rule.guard, recorded->offered, 100);
  const std::pair<std::int32_t, double> table[] = {{10, .979}, {20, .769}, {50, .521}, {100, .442}};
  for (const auto& [per_mille, idle] : table) {
    const auto result = backtest(spec_at(per_mille), demand);
    EXPECT_NEAR(static_cast<double>(result->idle_ppm()) / 1e6, idle, 0.0005) << per_mille;
  }
}

// A same-hour quantile violates as often as x = 22 %, and idles more than this guard does there.
TEST(GuardBacktest, D4_the_same_hour_of_other_days_violates_more_and_idles_more) {
  const auto recorded = Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const lead_time::GuardSpec rule = spec_at(10).rule.guard;
  const SlotDemand demand = scaled_demand(rule, recorded->offered, 100);
  const auto usual =
      testing::held_against(rule, demand, testing::same_hour_guard(rule, demand), second_week);
  const auto ours = backtest(spec_at(220), demand);
  const double idle = static_cast<double>(usual.idle) / static_cast<double>(usual.demand);
  std::printf("same-hour p95 and 15 %%: violated %lld of 167, idle %.3f; x=220: %lld, %.3f\n",
              static_cast<long long>(usual.violated_hours), idle,
              static_cast<long long>(ours->violated_hours),
              static_cast<double>(ours->idle_ppm()) / 1e6);
  EXPECT_GE(usual.violated_hours, ours->violated_hours);
  EXPECT_GT(idle * 1e6, static_cast<double>(ours->idle_ppm()));
}

TEST(GuardBacktest, D4_altering_the_recorded_future_changes_nothing_before_it) {
  const auto recorded = Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const SlotDemand demand = scaled_demand(spec_at(10).rule.guard, recorded->offered, 100);
  const auto before = backtest(spec_at(10), demand);
  std::size_t altered_later = 0;
  for (const std::size_t from : {200U, 777U, 1'008U, 1'500U, 2'014U}) {
    SlotDemand altered = demand;
    for (std::size_t s = from; s < altered.size(); ++s) {
      altered[s] = altered[s] ? 100 - *altered[s] : 100;
    }
    const auto after = backtest(spec_at(10), altered);
    for (std::size_t s = 0; s <= from; ++s) ASSERT_EQ(after->claims[s], before->claims[s]) << s;
    for (std::size_t s = from + 1; s < altered.size(); ++s) {
      altered_later += after->claims[s] == before->claims[s] ? 0 : 1;
    }
  }
  EXPECT_GT(altered_later, 1'000U) << "what comes after it follows it";
}

// Traffic that the rule was not made on: the stated rate, and two standard errors.
TEST(GuardBacktest, D4_traces_not_given_keep_the_stated_rate) {
  const auto held_out = testing::held_out();
  if (held_out.empty()) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  for (const auto& trace : held_out) {
    for (const std::int32_t per_mille : {10, 20, 50, 100}) {
      BacktestSpec spec{{trace.rule, 5}, {}, {}};
      spec.rule.guard.violations_per_mille = per_mille;
      const auto result = backtest(spec, trace.demand);
      ASSERT_TRUE(result) << trace.name << ": " << to_string(result.error());
      const std::int64_t most = violations_by_chance(result->scored_hours, per_mille);
      const bool keeps = result->violated_hours <= most;
      std::printf(
          "held out %s x=%d: violated %lld of %lld (at most %lld), idle %.2f, changes %.1f\n",
          trace.name.c_str(), per_mille, static_cast<long long>(result->violated_hours),
          static_cast<long long>(result->scored_hours), static_cast<long long>(most),
          static_cast<double>(result->idle_ppm()) / 1e6,
          static_cast<double>(result->changes_micro_per_day(trace.rule)) / 1e6);
      EXPECT_TRUE(keeps) << trace.name << " at " << per_mille;
    }
  }
}

TEST(GuardBacktest, D4_scored_slots_have_to_be_there) {
  const SlotDemand demand(300, 10);
  const auto error = [&](std::optional<Slots> scored) {
    const auto result = backtest(spec_at(10, scored), demand);
    return result ? std::string("done") : to_string(result.error());
  };
  EXPECT_EQ(error(Slots{0, 299}), "done");
  EXPECT_EQ(error(std::nullopt), "done");
  const char* expected = "score: expected FIRST:LAST within the slots of the traffic, 0 to 299";
  EXPECT_EQ(error(Slots{0, 300}), expected);
  EXPECT_EQ(error(Slots{5, 4}), expected);
  EXPECT_EQ(error(Slots{-1, 4}), expected);
  const auto early = backtest(spec_at(10, {}), SlotDemand(100, 10));
  EXPECT_EQ(to_string(early.error()),
            "traffic: expected more than 27 hours of known traffic: before that nothing is lent");
}

TEST(GuardBacktest, D4_few_hours_certify_nothing_and_the_note_says_so) {
  Backtest result;
  result.scored_hours = 167;
  result.violated_hours = 4;
  EXPECT_EQ(confidence_note(result, 10),
            "167 hours cannot certify a rate of 1.0 %: 4 were violated, so that the true rate lies "
            "between 0.9 % and 6.0 % (95 % confidence, hours taken as independent)");
  result.scored_hours = 8'000;
  EXPECT_EQ(confidence_note(result, 10).substr(0, 29), "8000 hours show a rate of 1.0");
  EXPECT_EQ(violations_by_chance(167, 10), 4);
  EXPECT_EQ(violations_by_chance(10'000, 100), 1'060);
}

// The pool's guard is that of the sum: at one rate it idles less than a guard for each service.
TEST(GuardBacktest, D4_the_guard_of_the_sum_idles_less_than_the_sum_of_guards) {
  const auto parts = testing::servegen_parts(3);
  if (parts.empty()) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  std::vector<SlotDemand> services;
  std::int64_t apart = 0, demand = 0;
  for (const auto& part : parts) {
    services.push_back(scaled_demand(spec_at(10).rule.guard, part, 33));
    BacktestSpec spec = spec_at(10);
    spec.rule.guard.devices = 40;
    const auto result = backtest(spec, services.back());
    apart += result->idle;
    demand += result->scored_d;
  }
  BacktestSpec spec = spec_at(10);
  spec.rule.guard.devices = 120;
  const auto together = backtest(spec, summed_demand(services));
  std::printf("three services at x=10: idle %.2f of the sum, %.2f apart\n",
              static_cast<double>(together->idle_ppm()) / 1e6,
              static_cast<double>(apart) / static_cast<double>(demand));
  EXPECT_LT(together->idle_ppm(), apart * 1'000'000 / demand);
}

}  // namespace
}  // namespace neap::simulate::backtest_test
