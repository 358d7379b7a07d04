// D4: the guard over synthetic years with the statistics of the recorded fortnight: the stated
// rates, steps, a holiday, an outage of the metrics, a cold start.
#include "simulate/guard/year.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "simulate/guard/backtest.h"
#include "simulate/guard/testing/recorded_demand.h"

namespace neap::simulate::year_test {
namespace {

constexpr std::int64_t day = year_slots_per_day;
constexpr std::int32_t rates[] = {10, 20, 50, 100};
constexpr std::uint64_t seeds[] = {1, 2, 3, 4, 5};

using testing::Offered;

BacktestSpec spec_at(std::int32_t per_mille, std::optional<Slots> scored = {}) {
  return {{{200, 600, 600, per_mille}, 5}, {}, scored};
}

SlotDemand demand_of(const Offered& offered) {
  return scaled_demand(spec_at(10).rule.guard, offered, 200);
}

Backtest tested(const SlotDemand& demand, std::int32_t per_mille,
                std::optional<Slots> scored = {}) {
  auto result = backtest(spec_at(per_mille, scored), demand);
  EXPECT_TRUE(result) << to_string(result.error());
  return std::move(*result);
}

// Every seed at every rate keeps to the rate and two standard errors.
void expect_rates(const std::string& what, const std::vector<Change>& changes) {
  std::vector<SlotDemand> years;
  for (const std::uint64_t seed : seeds) years.push_back(demand_of(draw_year({seed}, changes)));
  for (const std::int32_t per_mille : rates) {
    std::int64_t violated = 0, hours = 0, idle = 0, demand = 0;
    for (std::size_t i = 0; i < years.size(); ++i) {
      const Backtest result = tested(years[i], per_mille);
      const std::int64_t most = violations_by_chance(result.scored_hours, per_mille);
      EXPECT_LE(result.violated_hours, most)
          << what << ", seed " << seeds[i] << ", x " << per_mille;
      EXPECT_GE(result.violated_hours, most / 4) << "a guard that is never exceeded idles too much";
      violated += result.violated_hours;
      hours += result.scored_hours;
      idle += result.idle;
      demand += result.scored_d;
    }
    std::printf("synthetic %s x=%d: violated %lld of %lld hours, %.2f %%, idle %.2f\n",
                what.c_str(), per_mille, static_cast<long long>(violated),
                static_cast<long long>(hours),
                100.0 * static_cast<double>(violated) / static_cast<double>(hours),
                static_cast<double>(idle) / static_cast<double>(demand));
  }
}

TEST(GuardYear, D4_a_synthetic_year_keeps_the_stated_rates) { expect_rates("year", {}); }

TEST(GuardYear, D4_a_step_up_keeps_the_rates_over_the_year) {
  expect_rates("year with a step of +100 %", {{180 * day, 365 * day, 200}});
}

TEST(GuardYear, D4_a_step_down_keeps_the_rates_over_the_year) {
  expect_rates("year with a step of -50 %", {{180 * day, 365 * day, 50}});
}

TEST(GuardYear, D4_holidays_keep_the_rates_over_the_year) {
  expect_rates("year with holidays", {{120 * day, 123 * day, 55}, {240 * day, 241 * day, 170}});
}

struct AfterStep {
  std::int64_t first_day = 0;  // violated hours
  std::int64_t second_week = 0;
  std::int64_t first_day_same_hour = 0;  // of the guard that pools use today
};

// Over the seeds and four hours of the day at which it comes.
AfterStep violations_after(std::int64_t percent, std::int32_t per_mille) {
  AfterStep sum;
  for (const std::uint64_t seed : seeds) {
    for (const std::int64_t hour : {3, 9, 15, 21}) {
      const std::int64_t step = 60 * day + hour * 6;
      const SlotDemand demand = demand_of(draw_year({seed, 75}, {{step, 75 * day, percent}}));
      sum.first_day += tested(demand, per_mille, Slots{step, step + day - 1}).violated_hours;
      const lead_time::GuardSpec rule = spec_at(per_mille).rule.guard;
      sum.first_day_same_hour +=
          testing::held_against(rule, demand, testing::same_hour_guard(rule, demand),
                                {step, step + day - 1})
              .violated_hours;
      const Slots week{step + 7 * day, std::min(step + 14 * day, 75 * day) - 1};
      sum.second_week += tested(demand, per_mille, week).violated_hours;
    }
  }
  return sum;
}

TEST(GuardYear, D4_a_step_up_costs_few_violated_hours) {
  constexpr std::int64_t runs = 20;
  const AfterStep after = violations_after(200, 10);
  std::printf(
      "synthetic step of +100 %% x=10: %.1f violated hours in the first 24, %.1f in the "
      "second week; same-hour p95: %.1f in the first 24\n",
      static_cast<double>(after.first_day) / runs, static_cast<double>(after.second_week) / runs,
      static_cast<double>(after.first_day_same_hour) / runs);
  EXPECT_LT(3 * after.first_day, after.first_day_same_hour);
  EXPECT_LE(after.first_day, 6 * runs);
  EXPECT_GE(after.first_day, 1) << "a doubling that nobody could know of costs something";
  EXPECT_LE(after.second_week, violations_by_chance(168 * runs, 10));
}

TEST(GuardYear, D4_a_step_down_is_followed) {
  const std::int64_t step = 60 * day;
  const SlotDemand demand = demand_of(draw_year({1, 100}, {{step, 100 * day, 50}}));
  const Backtest before = tested(demand, 10, Slots{step - 14 * day, step - 1});
  const Backtest first_day = tested(demand, 10, Slots{step, step + day - 1});
  const Backtest later = tested(demand, 10, Slots{step + 14 * day, step + 28 * day - 1});
  std::printf(
      "synthetic step of -50 %% x=10: %lld violated hours in the first 24; mean guard %lld, "
      "then %lld\n",
      static_cast<long long>(first_day.violated_hours),
      static_cast<long long>(before.sum_c / (14 * day)),
      static_cast<long long>(later.sum_c / (14 * day)));
  EXPECT_EQ(first_day.violated_hours, 0);
  EXPECT_LT(later.sum_c * 10, before.sum_c * 7);
}

TEST(GuardYear, D4_a_planned_promotion_on_the_calendar_is_not_a_violation) {
  const std::int64_t first = 60 * day + 54, last = first + 35;  // 9 to 15 h
  SlotDemand demand = demand_of(draw_year({1, 75}));
  std::int64_t highest = 0;
  for (std::int64_t s = first; s <= last; ++s) {
    auto& slot = demand[static_cast<std::size_t>(s)];
    if (slot) slot = std::min<std::int64_t>(200, *slot * 3);
    highest = std::max(highest, slot.value_or(0));
  }
  BacktestSpec spec = spec_at(10, Slots{first, last});
  const auto unplanned = backtest(spec, demand);
  spec.calendar = {{Time(0) + minutes(10) * first, Time(0) + minutes(10) * (last + 1), highest}};
  const auto planned = backtest(spec, demand);
  EXPECT_GT(unplanned->violated_hours, 0);
  EXPECT_EQ(planned->violated_hours, 0);
  EXPECT_EQ(planned->claims[static_cast<std::size_t>(first - 1)].guard, highest)
      << "one lead before";
}

// Half a day without metrics in the night: what is claimed does not fall meanwhile, and nothing is
// scored. Read as a demand of nothing, the same gap empties the guard before the morning.
TEST(GuardYear, D4_an_outage_of_the_metrics_freezes_the_guard) {
  const std::size_t first = 60 * day + 20 * 6, last = first + 13 * 6;
  YearSpec quiet{1, 75};
  quiet.outages_per_mille = 0;
  const Offered offered = draw_year(quiet);
  Offered silent = offered, zero = offered;
  for (std::size_t s = first; s < last; ++s) {
    silent[s].reset();
    zero[s] = 0;
  }
  const SlotDemand frozen = demand_of(silent);
  const Backtest result = tested(frozen, 10);
  EXPECT_EQ(tested(demand_of(zero), 10).claims, result.claims) << "zeros are told from traffic";
  EXPECT_EQ(result.unknown_slots, 78);

  const std::int64_t last_known = *frozen[first - 1];
  std::int64_t least = 200;
  for (std::size_t s = first; s < last; ++s) least = std::min(least, result.claims[s].guard);
  EXPECT_GE(4 * least, 3 * last_known);

  SlotDemand taken_for_nothing = frozen;
  for (std::size_t s = first; s < last; ++s) taken_for_nothing[s] = 0;
  const Backtest fooled = tested(taken_for_nothing, 10);
  const auto morning = Slots{static_cast<std::int64_t>(last), static_cast<std::int64_t>(last) + 5};
  std::printf(
      "synthetic outage of 13 h x=10: guard at least %lld at a last demand of %lld; taken "
      "for nothing %lld\n",
      static_cast<long long>(least), static_cast<long long>(last_known),
      static_cast<long long>(fooled.claims[last - 1].guard));
  EXPECT_LT(fooled.claims[last - 1].guard, least) << "the property can tell";
  EXPECT_EQ(tested(frozen, 10, morning).violated_hours, 0);
}

TEST(GuardYear, D4_a_cold_start_lends_nothing_for_27_hours) {
  YearSpec quiet{7, 10};
  quiet.outages_per_mille = 0;
  const Backtest result = tested(demand_of(draw_year(quiet)), 50);
  EXPECT_EQ(result.first_lend_slot, 27 * 6);
  for (std::size_t s = 0; s < 27 * 6; ++s) EXPECT_EQ(result.claims[s].guard, 200);
}

TEST(GuardYear, D4_the_buffer_catches_most_of_what_the_guard_misses) {
  const Backtest result = tested(demand_of(draw_year({1})), 50);
  std::printf(
      "synthetic year x=50, buffer at y=5: violated %lld hours, with the buffer %lld; mean "
      "buffer %.1f devices\n",
      static_cast<long long>(result.violated_hours),
      static_cast<long long>(result.violated_with_buffer),
      static_cast<double>(result.sum_buffer) /
          static_cast<double>(result.scored.last - result.scored.first + 1));
  EXPECT_LT(result.violated_with_buffer * 4, result.violated_hours);
  EXPECT_LE(result.violated_with_buffer, violations_by_chance(result.scored_hours, 5));
}

// ---- the year beside the trace it is fitted to -----------------------------------------------

struct Statistics {
  double highest_hour = 0, lowest_hour = 0;  // of the mean
  double spread = 0;                         // of what day and hour do not explain
  double next = 0, hour_later = 0;           // its autocorrelation
  double gaps = 0;                           // unknown slots
};

Statistics statistics_of(const SlotDemand& demand) {
  double sums[24] = {}, counts[24] = {}, sum = 0, known = 0;
  for (std::size_t s = 0; s < demand.size(); ++s) {
    if (!demand[s]) continue;
    const auto value = static_cast<double>(*demand[s]);
    sums[s / 6 % 24] += value;
    ++counts[s / 6 % 24];
    sum += value;
    ++known;
  }
  Statistics found;
  double hours[24];
  for (int h = 0; h < 24; ++h) hours[h] = sums[h] / counts[h] / (sum / known);
  found.highest_hour = *std::max_element(hours, hours + 24);
  found.lowest_hour = *std::min_element(hours, hours + 24);
  found.gaps = 1 - known / static_cast<double>(demand.size());
  std::vector<double> rest(demand.size(), 0);
  for (std::size_t d = 0; d < demand.size() / day; ++d) {
    double all = 0, count = 0;
    for (std::size_t s = d * day; s < (d + 1) * day; ++s) {
      if (!demand[s]) continue;
      all += static_cast<double>(*demand[s]) / hours[s / 6 % 24];
      ++count;
    }
    for (std::size_t s = d * day; s < (d + 1) * day; ++s) {
      if (demand[s])
        rest[s] = static_cast<double>(*demand[s]) / hours[s / 6 % 24] / (all / count) - 1;
    }
  }
  const auto together = [&](std::size_t lag) {
    double products = 0, count = 0;
    for (std::size_t s = 0; s + lag < rest.size(); ++s) {
      if (!demand[s] || !demand[s + lag]) continue;
      products += rest[s] * rest[s + lag];
      ++count;
    }
    return products / count;
  };
  found.spread = std::sqrt(together(0));
  found.next = together(1) / together(0);
  found.hour_later = together(6) / together(0);
  return found;
}

TEST(GuardYear, D4_the_synthetic_year_has_the_statistics_of_the_trace) {
  const auto recorded = testing::Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const auto fine = [](const Offered& offered) {
    return statistics_of(scaled_demand(spec_at(10).rule.guard, offered, 100'000));
  };
  const Statistics trace = fine(recorded->offered);
  const Statistics year = fine(draw_year({1}));
  const auto shown = [](const char* name, const Statistics& s) {
    std::printf(
        "statistics of the %s: hours %.2f to %.2f, spread %.3f, correlation %.2f and %.2f, "
        "gaps %.3f\n",
        name, s.lowest_hour, s.highest_hour, s.spread, s.next, s.hour_later, s.gaps);
  };
  shown("trace", trace);
  shown("year", year);
  EXPECT_NEAR(year.highest_hour, trace.highest_hour, 0.05);
  EXPECT_NEAR(year.lowest_hour, trace.lowest_hour, 0.05);
  EXPECT_NEAR(year.spread, trace.spread, 0.03);
  EXPECT_NEAR(year.next, trace.next, 0.1);
  EXPECT_NEAR(year.hour_later, trace.hour_later, 0.15);
  EXPECT_NEAR(year.gaps, trace.gaps, 0.01);
}

}  // namespace
}  // namespace neap::simulate::year_test
