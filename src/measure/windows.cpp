#include "measure/windows.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::measure {

SlidingHistogram::SlidingHistogram(Micros slice_length, std::size_t slices)
    : slice_length_(slice_length), ring_(slices) {
  NEAP_CHECK(slice_length > Micros(0));
  NEAP_CHECK(slices > 0);
}

void SlidingHistogram::record(Time at, Micros sample) {
  NEAP_CHECK(at >= Time(0));
  const auto kept = static_cast<std::int64_t>(ring_.size());
  std::int64_t number = at.us / slice_length_.value;
  newest_ = std::max(newest_, number);
  number = std::max(number, newest_ - kept + 1);
  Slice& slice = ring_[static_cast<std::size_t>(number % kept)];
  if (slice.number != number) {
    slice.number = number;
    slice.samples.clear();
  }
  slice.samples.record(sample);
}

Histogram SlidingHistogram::over(Time now, Micros length) const {
  const std::int64_t last = now.us / slice_length_.value;
  const std::int64_t wanted = (length.value + slice_length_.value - 1) / slice_length_.value;
  Histogram merged;
  for (const Slice& slice : ring_) {
    if (slice.number >= 0 && slice.number <= last && slice.number > last - wanted) {
      merged.merge(slice.samples);
    }
  }
  return merged;
}

RequestTotals& RequestTotals::operator+=(const RequestTotals& other) {
  responses += other.responses;
  within_slo += other.within_slo;
  failures += other.failures;
  busy += other.busy;
  busy_within_slo += other.busy_within_slo;
  return *this;
}

Time slice_start(Time at, Micros slice_length) {
  NEAP_CHECK(slice_length > Micros(0));
  const std::int64_t into =
      ((at.us % slice_length.value) + slice_length.value) % slice_length.value;
  return Time(at.us - into);
}

}  // namespace neap::measure
