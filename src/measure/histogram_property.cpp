// E2: quantiles within 1 % of the exact nearest rank; merging equals recording together.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "measure/histogram.h"

namespace neap::measure {
namespace {

// Lengths of time over all magnitudes, not only the small ones that generators prefer.
rc::Gen<std::vector<std::int64_t>> samples() {
  return rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 40), rc::gen::arbitrary<std::uint64_t>()),
                   [](const std::pair<int, std::uint64_t>& drawn) {
                     const std::uint64_t mask = (std::uint64_t{1} << drawn.first) - 1;
                     return static_cast<std::int64_t>(drawn.second & mask);
                   }));
}

Histogram histogram_of(const std::vector<std::int64_t>& values) {
  Histogram histogram;
  for (const std::int64_t v : values) histogram.record(Micros(v));
  return histogram;
}

RC_GTEST_PROP(HistogramProperty, E2_QuantilesWithinOnePercentOfExactSort, ()) {
  std::vector<std::int64_t> values = *samples();
  RC_PRE(!values.empty());
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, all_ppm.value + 1);
  const Histogram histogram = histogram_of(values);
  std::ranges::sort(values);
  const auto size = static_cast<std::int64_t>(values.size());
  const std::int64_t nearest = std::max<std::int64_t>(1, (rank * size + 999'999) / 1'000'000);
  const std::int64_t exact = values[static_cast<std::size_t>(nearest - 1)];
  const std::int64_t got = histogram.quantile(Ppm(rank)).value;
  RC_LOG() << "exact " << exact << " got " << got;
  RC_ASSERT(std::abs(got - exact) * 100 <= exact);
  RC_ASSERT(histogram.min().value == values.front());
  RC_ASSERT(histogram.max().value == values.back());
}

RC_GTEST_PROP(HistogramProperty, E2_MergeEqualsRecordingTogether, ()) {
  const std::vector<std::int64_t> left = *samples();
  const std::vector<std::int64_t> right = *samples();
  std::vector<std::int64_t> both = left;
  both.insert(both.end(), right.begin(), right.end());
  Histogram merged = histogram_of(left);
  merged.merge(histogram_of(right));
  RC_ASSERT(merged == histogram_of(both));
}

RC_GTEST_PROP(HistogramProperty, E2_QuantilesGrowWithRank, ()) {
  const Histogram histogram = histogram_of(*samples());
  std::int64_t low = *rc::gen::inRange<std::int64_t>(0, all_ppm.value + 1);
  std::int64_t high = *rc::gen::inRange<std::int64_t>(0, all_ppm.value + 1);
  if (low > high) std::swap(low, high);
  RC_ASSERT(histogram.quantile(Ppm(low)) <= histogram.quantile(Ppm(high)));
}

}  // namespace
}  // namespace neap::measure
