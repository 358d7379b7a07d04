// F3, S9: the three numbers are judged together.
#include "simulate/assess/three_numbers.h"

#include <gtest/gtest.h>

namespace neap::assess {
namespace {

ThreeNumbers numbers(std::int64_t effective_ppm, std::int64_t wait_us, std::int64_t p99_us) {
  ThreeNumbers out;
  out.effective_ppm = effective_ppm;
  out.mean_wait_us = wait_us;
  out.services = {{"chat", p99_us / 2, p99_us}};
  return out;
}

const ThreeNumbers before = numbers(400'000, 3'600'000'000, 250'000);

Comparison compared(const ThreeNumbers& after) {
  const auto found = compare({}, before, after);
  EXPECT_TRUE(found.has_value());
  return found.value_or(Comparison{});
}

TEST(ThreeNumbers, S9_UtilisationUpAndLatencyWorseIsIsolationTooWeak) {
  const Comparison found = compared(numbers(700'000, 600'000'000, 400'000));
  EXPECT_EQ(found.outcome, Outcome::isolation_too_weak);
  EXPECT_EQ(found.verdict.find("isolation too weak"), 0U) << found.verdict;
  EXPECT_NE(found.verdict.find("chat p99"), std::string::npos);
  // It does not celebrate.
  EXPECT_EQ(found.verdict.find("better"), std::string::npos) << found.verdict;
  std::printf("S9: utilisation 40 %% to 70 %%, p99 250 ms to 400 ms: %s\n", found.verdict.c_str());
}

TEST(ThreeNumbers, F3_OneSlowServiceAmongManyIsEnough) {
  ThreeNumbers a = before, b = numbers(700'000, 600'000'000, 200'000);
  a.services.push_back({"search", 40'000, 50'000});
  b.services.push_back({"search", 40'000, 60'000});
  const auto found = compare({}, a, b);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->outcome, Outcome::isolation_too_weak);
  EXPECT_NE(found->verdict.find("search p99"), std::string::npos);
  EXPECT_EQ(found->verdict.find("chat"), std::string::npos);
}

TEST(ThreeNumbers, F3_EachVerdict) {
  EXPECT_EQ(compared(numbers(700'000, 600'000'000, 250'000)).outcome, Outcome::all_better);
  EXPECT_EQ(compared(numbers(400'000, 3'600'000'000, 200'000)).outcome, Outcome::all_better);
  EXPECT_EQ(compared(numbers(404'000, 3'620'000'000, 251'000)).outcome, Outcome::no_change);
  EXPECT_EQ(compared(numbers(700'000, 7'200'000'000, 250'000)).outcome, Outcome::waits_longer);
  EXPECT_EQ(compared(numbers(300'000, 600'000'000, 100'000)).outcome, Outcome::worse);
  EXPECT_EQ(compared(numbers(400'000, 3'600'000'000, 300'000)).outcome, Outcome::worse);
}

TEST(ThreeNumbers, F3_WithoutAnyLatencyThereIsNoVerdict) {
  ThreeNumbers bare;
  bare.effective_ppm = 700'000;
  EXPECT_FALSE(compare({}, before, bare).has_value()) << "chat is gone";
  EXPECT_FALSE(compare({}, bare, bare).has_value());
  ThreeNumbers a = bare, b = bare;
  a.late_parts = 1'000;
  b.late_parts = 90'000;
  b.effective_ppm = 900'000;
  const auto found = compare({}, a, b);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->outcome, Outcome::isolation_too_weak);
}

}  // namespace
}  // namespace neap::assess
