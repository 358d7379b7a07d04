// E2: the last minute, and slices aligned to the clock.
#include "measure/windows.h"

#include <gtest/gtest.h>

namespace neap::measure::windows_test {
namespace {

Time at(std::int64_t s) { return Time(0) + seconds(s); }

TEST(SlidingHistogram, E2_OldSlicesFallOut) {
  SlidingHistogram sliding(seconds(10), 6);
  sliding.record(at(5), milliseconds(100));
  sliding.record(at(15), milliseconds(200));
  sliding.record(at(25), milliseconds(300));
  EXPECT_EQ(sliding.over(at(25), seconds(60)).count(), 3U);
  EXPECT_EQ(sliding.over(at(25), seconds(20)).count(), 2U);
  EXPECT_EQ(sliding.over(at(25), seconds(10)).max(), milliseconds(300));
  EXPECT_EQ(sliding.over(at(65), seconds(60)).min(), milliseconds(200));
  EXPECT_TRUE(sliding.over(at(200), seconds(60)).empty());
}

TEST(SlidingHistogram, E2_ASlotIsUsedAgain) {
  SlidingHistogram sliding(seconds(10), 2);
  sliding.record(at(5), milliseconds(100));
  sliding.record(at(25), milliseconds(300));  // same slot as the first
  EXPECT_EQ(sliding.over(at(25), seconds(20)).count(), 1U);
  EXPECT_EQ(sliding.over(at(25), seconds(20)).min(), milliseconds(300));
}

TEST(SlidingHistogram, E2_ALateSampleCountsInTheOldestSlice) {
  SlidingHistogram sliding(seconds(10), 2);
  sliding.record(at(95), milliseconds(1));
  sliding.record(at(5), milliseconds(2));
  EXPECT_EQ(sliding.over(at(95), seconds(20)).count(), 2U);
  EXPECT_EQ(sliding.over(at(95), seconds(10)).count(), 1U);
}

TEST(Slices, E2_StartsAreAlignedToTheEpoch) {
  EXPECT_EQ(slice_start(at(19), seconds(10)), at(10));
  EXPECT_EQ(slice_start(at(20), seconds(10)), at(20));
  EXPECT_EQ(slice_start(Time(-1), seconds(10)), at(-10));
}

TEST(RequestTotals, E2_Add) {
  RequestTotals sum{.responses = 1, .within_slo = 1, .busy = Micros(5)};
  sum += {.responses = 2, .failures = 1, .busy = Micros(7), .busy_within_slo = Micros(3)};
  EXPECT_EQ(sum, (RequestTotals{.responses = 3,
                                .within_slo = 1,
                                .failures = 1,
                                .busy = Micros(12),
                                .busy_within_slo = Micros(3)}));
}

}  // namespace
}  // namespace neap::measure::windows_test
