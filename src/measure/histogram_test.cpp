// E2: exact-enough histograms of request times.
#include "measure/histogram.h"

#include <gtest/gtest.h>

namespace neap::measure {
namespace {

TEST(Histogram, E2_EmptyReportsZero) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.quantile(Ppm(990'000)), Micros(0));
  EXPECT_EQ(empty.min(), Micros(0));
  EXPECT_EQ(empty.max(), Micros(0));
  EXPECT_EQ(empty.mean(), Micros(0));
}

TEST(Histogram, E2_SmallValuesAreExact) {
  Histogram histogram;
  for (std::int64_t v = 1; v <= 100; ++v) histogram.record(Micros(v));
  EXPECT_EQ(histogram.percentiles().p50, Micros(50));
  EXPECT_EQ(histogram.percentiles().p95, Micros(95));
  EXPECT_EQ(histogram.percentiles().p99, Micros(99));
  EXPECT_EQ(histogram.quantile(Ppm(0)), Micros(1));
  EXPECT_EQ(histogram.quantile(all_ppm), Micros(100));
  EXPECT_EQ(histogram.mean(), Micros(50));
}

TEST(Histogram, E2_EveryBucketIsNarrowEnough) {
  const std::size_t last = Histogram::bucket_of(Histogram::longest);
  for (std::size_t i = 0; i < last; ++i) {
    const Micros floor = Histogram::bucket_floor(i);
    const Micros next = Histogram::bucket_floor(i + 1);
    ASSERT_EQ(Histogram::bucket_of(floor), i);
    ASSERT_EQ(Histogram::bucket_of(next - Micros(1)), i);
    // Half a bucket, the largest error of its middle, is at most 1 % of its floor.
    ASSERT_LE((next - floor - Micros(1)).value * 50, floor.value) << "bucket " << i;
  }
}

TEST(Histogram, E2_OutOfRangeIsClampedNotLost) {
  Histogram histogram;
  histogram.record(Micros(-5));
  histogram.record(Micros::max());
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.min(), Micros(0));
  EXPECT_EQ(histogram.max(), Histogram::longest);
}

TEST(Histogram, E2_SumSaturates) {
  Histogram histogram;
  histogram.record(Histogram::longest, std::uint64_t{1} << 60);
  histogram.record(Micros(1));
  EXPECT_EQ(histogram.sum(), Micros::max());
}

TEST(Histogram, E2_CountAtMost) {
  Histogram histogram;
  histogram.record(Micros(10), 3);
  histogram.record(milliseconds(200), 5);
  histogram.record(seconds(2), 2);
  EXPECT_EQ(histogram.count_at_most(Micros(-1)), 0U);
  EXPECT_EQ(histogram.count_at_most(Micros(9)), 0U);
  EXPECT_EQ(histogram.count_at_most(Micros(10)), 3U);
  EXPECT_EQ(histogram.count_at_most(milliseconds(500)), 8U);
  EXPECT_EQ(histogram.count_at_most(Micros::max()), 10U);
}

TEST(Histogram, E2_ClearForgetsAll) {
  Histogram histogram;
  histogram.record(Micros(10), 3);
  histogram.clear();
  EXPECT_EQ(histogram, Histogram());
}

}  // namespace
}  // namespace neap::measure
