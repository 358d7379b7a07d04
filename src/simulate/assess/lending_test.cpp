// Where sharing does not help, neap says so (F1).
#include "simulate/assess/lending.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <tuple>

#include "simulate/guard/testing/recorded_demand.h"
#include "simulate/loaning/workload.h"

namespace neap::assess {
namespace {

constexpr std::int64_t pool = 100;
constexpr int slots_a_day = 144;

simulate::BacktestSpec ten_minutes() { return {{{pool, 600, 600, 50}, 5}, {}, {}}; }

Lending lending_on(const simulate::SlotDemand& demand) {
  const simulate::BacktestSpec spec = ten_minutes();
  const auto result = simulate::backtest(spec, demand);
  EXPECT_TRUE(result.has_value());
  return lending_of({}, spec, demand, *result);
}

// A day's wave between trough and peak, for two weeks.
simulate::SlotDemand wave(double trough, double peak) {
  simulate::SlotDemand demand;
  for (int s = 0; s < 14 * slots_a_day; ++s) {
    const double part = (1 - std::cos(2 * M_PI * s / slots_a_day)) / 2;
    demand.emplace_back(std::llround(trough + (peak - trough) * part));
  }
  return demand;
}

TEST(Lending, F1_FlatDemandIsNoGain) {
  const Lending lending = lending_on(wave(95, 98));
  EXPECT_FALSE(lending.gain);
  EXPECT_NE(lending.verdict.find("no gain: "), std::string::npos) << lending.verdict;
  EXPECT_NE(lending.verdict.find("the demand is flat"), std::string::npos) << lending.verdict;
  std::printf("lending on flat demand: %s\n", lending.verdict.c_str());
}

TEST(Lending, F1_DevicesThatInferenceNeverNeedsAreNoGainOfLending) {
  const Lending lending = lending_on(simulate::SlotDemand(14 * slots_a_day, 50));
  EXPECT_FALSE(lending.gain) << lending.verdict;
  EXPECT_EQ(lending.lent_ppm, 0);
}

TEST(Lending, F1_AHighMeanOverPeakIsNoGain) {
  const Lending lending = lending_on(wave(84, 100));
  EXPECT_FALSE(lending.gain) << lending.verdict;
  EXPECT_GT(lending.mean_over_peak_ppm, 900'000);
  std::printf("lending at mean/peak %.2f: %s\n",
              static_cast<double>(lending.mean_over_peak_ppm) / 1e6, lending.verdict.c_str());
}

TEST(Lending, F1_MeanOverPeakOfAHalfIsAGainAndItsFigureIsSaid) {
  const Lending lending = lending_on(wave(0, 100));
  EXPECT_TRUE(lending.gain);
  EXPECT_NEAR(static_cast<double>(lending.mean_over_peak_ppm), 500'000, 20'000);
  EXPECT_GE(lending.lent_ppm, lending.usable_ppm);
  std::printf("lending at mean/peak %.2f: %s\n",
              static_cast<double>(lending.mean_over_peak_ppm) / 1e6, lending.verdict.c_str());
}

TEST(Lending, F1_WhatIsLentForTooShortIsNotUsable) {
  const simulate::BacktestSpec spec = ten_minutes();
  simulate::Backtest result;
  simulate::SlotDemand demand(12, 50);
  demand[0] = pool;
  // Ten are lent all the time, thirty more in two stretches of ten minutes, twenty for forty.
  const int lent[] = {10, 40, 10, 40, 10, 10, 30, 30, 30, 30, 10, 10};
  for (const int devices : lent) {
    lead_time::Claim claim;
    claim.guard = pool - devices;
    result.claims.push_back(claim);
  }
  result.scored = {0, 11};
  const Lending lending = lending_of({}, spec, demand, result);
  EXPECT_EQ(lending.lent_ppm, (12 * 10 + 2 * 30 + 4 * 20) * 1'000'000LL / (12 * pool));
  EXPECT_EQ(lending.usable_ppm, (12 * 10 + 4 * 20) * 1'000'000LL / (12 * pool));
}

TEST(Lending, F1_TheRealTraceIsAGain) {
  const auto recorded = simulate::testing::Recorded::servegen();
  if (!recorded) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const simulate::SlotDemand demand =
      simulate::scaled_demand(ten_minutes().rule.guard, recorded->offered, pool);
  const Lending lending = lending_on(demand);
  EXPECT_TRUE(lending.gain) << lending.verdict;
  std::printf("lending on the recorded trace (mean/peak %.2f): %s\n",
              static_cast<double>(lending.mean_over_peak_ppm) / 1e6, lending.verdict.c_str());
}

// The traffic of the experiment on lending (bench/loaning), where each share was measured too.
TEST(Lending, F1_TheTrafficOfTheExperiment) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const auto recorded = loaning::read_recorded(traces);
  ASSERT_TRUE(recorded.has_value());
  const std::tuple<loaning::TrafficShape, const char*, bool> shapes[] = {
      {loaning::TrafficShape::recorded, "recorded", true},
      {loaning::TrafficShape::broad, "broad", true},
      {loaning::TrafficShape::flat, "flat", false}};
  for (const auto& [shape, name, gains] : shapes) {
    loaning::WorkloadSpec workload_spec;
    workload_spec.traffic = shape;
    workload_spec.seed = 11;
    const loaning::Workload workload = loaning::make_workload(*recorded, workload_spec);
    simulate::SlotDemand demand;
    for (std::size_t minute = 0; minute + 10 <= workload.demand_milli.size(); minute += 10) {
      const auto first = workload.demand_milli.begin() + static_cast<std::ptrdiff_t>(minute);
      demand.emplace_back((*std::max_element(first, first + 10) + 999) / 1'000);
    }
    simulate::BacktestSpec spec = ten_minutes();
    spec.rule.guard.devices = 512;
    const auto result = simulate::backtest(spec, demand);
    ASSERT_TRUE(result.has_value());
    const Lending lending = lending_of({}, spec, demand, *result);
    EXPECT_EQ(lending.gain, gains) << lending.verdict;
    std::printf("lending, %s traffic of the experiment, mean/peak %.2f: %s\n", name,
                static_cast<double>(lending.mean_over_peak_ppm) / 1e6, lending.verdict.c_str());
  }
}

}  // namespace
}  // namespace neap::assess
