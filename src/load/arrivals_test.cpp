#include "load/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace neap::load {
namespace {

std::vector<Micros> all(Arrivals arrivals) {
  std::vector<Micros> times;
  while (const auto at = arrivals.next()) times.push_back(*at);
  return times;
}

TEST(RateCurve, StraightLinesAndJumps) {
  const auto curve = RateCurve::from_points(
      {{seconds(0), 2}, {seconds(10), 4}, {seconds(10), 10}, {seconds(20), 0}});
  ASSERT_TRUE(curve);
  EXPECT_DOUBLE_EQ(curve->rate_at(seconds(5)), 3);
  EXPECT_DOUBLE_EQ(curve->rate_at(seconds(10)), 10);
  EXPECT_DOUBLE_EQ(curve->rate_at(seconds(20)), 0);
  EXPECT_DOUBLE_EQ(curve->rate_at(seconds(21)), 0);
  EXPECT_DOUBLE_EQ(curve->expected_until(seconds(10)), 30);
  EXPECT_DOUBLE_EQ(curve->expected_until(seconds(30)), 80);
  EXPECT_FALSE(curve->when_expected(80.1));
}

TEST(RateCurve, TheInverseOfWhatIsExpected) {
  const auto curve = RateCurve::from_points(
      {{seconds(0), 0}, {seconds(7), 0}, {seconds(9), 50}, {seconds(9), 3}, {seconds(40), 3.5}});
  ASSERT_TRUE(curve);
  for (double arrivals = 0.01; arrivals < curve->expected_until(curve->length());
       arrivals += 0.37) {
    const auto when = curve->when_expected(arrivals);
    ASSERT_TRUE(when);
    EXPECT_NEAR(curve->expected_until(*when), arrivals, 1e-4);
  }
}

TEST(RateCurve, RefusesWhatIsNoCurve) {
  EXPECT_FALSE(RateCurve::from_points({{seconds(0), 1}}));
  EXPECT_FALSE(RateCurve::from_points({{seconds(1), 1}, {seconds(2), 1}}));
  EXPECT_EQ(
      RateCurve::from_points({{seconds(0), 1}, {seconds(2), 1}, {seconds(1), 1}}).error().context,
      "point 3");
  EXPECT_FALSE(RateCurve::constant(-1, seconds(1)));
  EXPECT_FALSE(RateCurve::constant(std::nan(""), seconds(1)));
  EXPECT_FALSE(RateCurve::constant(1, seconds(0)));
}

TEST(Arrivals, OneSeedOneSequence) {
  const RateCurve curve = *RateCurve::constant(50, seconds(20));
  EXPECT_EQ(all(Arrivals(curve, 7)), all(Arrivals(curve, 7)));
  EXPECT_NE(all(Arrivals(curve, 7)), all(Arrivals(curve, 8)));
}

// Number and spacing of a Poisson process, within six standard deviations.
TEST(Arrivals, ArePoisson) {
  const std::vector<Micros> times = all(Arrivals(*RateCurve::constant(100, seconds(1000)), 1));
  const auto count = static_cast<double>(times.size());
  EXPECT_NEAR(count, 100'000, 6 * std::sqrt(100'000.0));
  double squares = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    ASSERT_GE(times[i], times[i - 1]);
    const double gap = static_cast<double>((times[i] - times[i - 1]).value) / 10'000;
    squares += (gap - 1) * (gap - 1);
  }
  EXPECT_NEAR(squares / count, 1, 6 * std::sqrt(8 / count));  // variance of an exponential
}

TEST(Arrivals, FollowTheCurve) {
  const auto curve = RateCurve::from_points({{seconds(0), 0}, {seconds(1000), 100}});
  int early = 0;
  int late = 0;
  for (const Micros at : all(Arrivals(*curve, 3))) ++(at < seconds(500) ? early : late);
  EXPECT_NEAR(early, 12'500, 6 * std::sqrt(12'500.0));
  EXPECT_NEAR(late, 37'500, 6 * std::sqrt(37'500.0));
}

TEST(Day, HasItsPhasesInOrder) {
  const auto day = make_day({.length = seconds(100), .burst_per_second = 8});
  ASSERT_TRUE(day);
  EXPECT_EQ(phase_at(*day, seconds(0)), "night");
  EXPECT_EQ(phase_at(*day, seconds(15)), "morning");
  EXPECT_EQ(phase_at(*day, seconds(41)), "burst");
  EXPECT_EQ(phase_at(*day, seconds(99)), "night");
  EXPECT_DOUBLE_EQ(day->curve.rate_at((day->burst_from + day->burst_until) / 2), 8);
  EXPECT_EQ(day->curve.length(), seconds(100));
}

}  // namespace
}  // namespace neap::load
