#include "measure/histogram.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/model/check.h"

namespace neap::measure {
namespace {

constexpr unsigned octave_bits = 6;  // 64 buckets an octave: half a bucket is at most 0.8 %
constexpr std::uint64_t octave_buckets = std::uint64_t{1} << octave_bits;
constexpr std::uint64_t exact_below = 2 * octave_buckets;

Micros add_saturating(Micros a, Micros b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.value, b.value, &sum)) return Micros::max();
  return Micros(sum);
}

Micros times_saturating(Micros a, std::uint64_t times) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a.value, times, &product)) return Micros::max();
  return Micros(product);
}

}  // namespace

std::size_t Histogram::bucket_of(Micros sample) {
  const auto value = static_cast<std::uint64_t>(std::clamp(sample, Micros(0), longest).value);
  if (value < exact_below) return value;
  // The leading bit and the octave_bits after it choose the bucket.
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - octave_bits - 1;
  return shift * octave_buckets + (value >> shift);
}

Micros Histogram::bucket_floor(std::size_t index) {
  if (index < exact_below) return Micros(static_cast<std::int64_t>(index));
  const std::uint64_t shift = index / octave_buckets - 1;
  const std::uint64_t leading = index - shift * octave_buckets;
  return Micros(static_cast<std::int64_t>(leading << shift));
}

void Histogram::record(Micros sample, std::uint64_t times) {
  if (times == 0) return;
  sample = std::clamp(sample, Micros(0), longest);
  const std::size_t index = bucket_of(sample);
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  buckets_[index] += times;
  count_ += times;
  min_ = std::min(min_, sample);
  max_ = std::max(max_, sample);
  sum_ = add_saturating(sum_, times_saturating(sample, times));
}

void Histogram::merge(const Histogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ = add_saturating(sum_, other.sum_);
}

void Histogram::merge(std::span<const std::pair<std::uint32_t, std::uint32_t>> buckets,
                      const Exact& exact) {
  if (buckets.empty()) return;
  if (buckets.back().first >= buckets_.size()) buckets_.resize(buckets.back().first + 1);
  for (const auto& [index, samples] : buckets) buckets_[index] += samples;
  count_ += exact.count;
  min_ = std::min(min_, exact.min);
  max_ = std::max(max_, exact.max);
  sum_ = add_saturating(sum_, exact.sum);
}

void Histogram::clear() { *this = Histogram(); }

Micros Histogram::mean() const {
  return count_ == 0 ? Micros(0) : Micros(sum_.value / static_cast<std::int64_t>(count_));
}

Micros Histogram::quantile(Ppm rank) const {
  NEAP_CHECK(rank >= Ppm(0) && rank <= all_ppm);
  if (count_ == 0) return Micros(0);
  // ceil(rank * count / 1'000'000) without overflow, at least the first sample.
  const auto all = static_cast<std::uint64_t>(all_ppm.value);
  const auto part = static_cast<std::uint64_t>(rank.value);
  const std::uint64_t target =
      std::max<std::uint64_t>(1, count_ / all * part + (count_ % all * part + all - 1) / all);
  if (target == count_) return max_;
  if (target == 1) return min_;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen < target) continue;
    const Micros floor = bucket_floor(i);
    const Micros middle = floor + (bucket_floor(i + 1) - floor - Micros(1)) / 2;
    return std::clamp(middle, min_, max_);
  }
  NEAP_CHECK(false);  // the buckets sum to count_
}

Percentiles Histogram::percentiles() const {
  return {
      .p50 = quantile(Ppm(500'000)), .p95 = quantile(Ppm(950'000)), .p99 = quantile(Ppm(990'000))};
}

std::uint64_t Histogram::count_at_most(Micros limit) const {
  if (limit < Micros(0)) return 0;
  const std::size_t end = std::min(buckets_.size(), bucket_of(limit) + 1);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < end; ++i) total += buckets_[i];
  return total;
}

}  // namespace neap::measure
