#include "measure/sparse_histogram.h"

#include <algorithm>

namespace neap::measure {

void SparseHistogram::record(Micros sample) {
  sample = std::clamp(sample, Micros(0), Histogram::longest);
  const auto index = static_cast<std::uint32_t>(Histogram::bucket_of(sample));
  const auto at =
      std::ranges::lower_bound(buckets_, index, {}, [](const auto& b) { return b.first; });
  if (at != buckets_.end() && at->first == index) {
    if (at->second == UINT32_MAX) return;  // four thousand million in one slice: none is so busy
    ++at->second;
  } else {
    buckets_.insert(at, {index, 1});
  }
  ++count_;
  min_ = std::min(min_, sample);
  max_ = std::max(max_, sample);
  if (__builtin_add_overflow(sum_.value, sample.value, &sum_.value)) sum_ = Micros::max();
}

void SparseHistogram::add_to(Histogram& into) const {
  if (count_ > 0) into.merge(buckets_, {count_, min_, max_, sum_});
}

void SparseHistogram::clear() { *this = SparseHistogram(); }

}  // namespace neap::measure
