// A histogram of lengths of time: exact below 128 µs, log-linear above (64 buckets an octave), so
// that a reported quantile is within 1 % of the sample it stands for. Merging loses nothing:
// the merge of two histograms equals the histogram of both sets of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/model/units.h"

namespace neap::measure {

struct Percentiles {
  Micros p50;
  Micros p95;
  Micros p99;
};

class Histogram {
 public:
  // Samples above this (twelve days) are counted as this, and negative ones as 0.
  static constexpr Micros longest{(std::int64_t{1} << 40) - 1};

  void record(Micros sample, std::uint64_t times = 1);
  void merge(const Histogram& other);
  // Of a set of samples of which only the buckets are known: (index, samples), the largest index
  // last, and what is exact about them.
  struct Exact {
    std::uint64_t count = 0;
    Micros min;
    Micros max;
    Micros sum;
  };
  void merge(std::span<const std::pair<std::uint32_t, std::uint32_t>> buckets, const Exact& exact);
  void clear();

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Exact, 0 when empty. The sum saturates.
  [[nodiscard]] Micros min() const { return count_ == 0 ? Micros(0) : min_; }
  [[nodiscard]] Micros max() const { return max_; }
  [[nodiscard]] Micros sum() const { return sum_; }
  [[nodiscard]] Micros mean() const;

  // Nearest rank: stands for the smallest sample that at least `rank` of all samples do not
  // exceed; within 1 % of it, and exact at both ends. 0 when empty.
  [[nodiscard]] Micros quantile(Ppm rank) const;
  [[nodiscard]] Percentiles percentiles() const;
  // Samples that are at most `limit`, give or take those within 1 % of it.
  [[nodiscard]] std::uint64_t count_at_most(Micros limit) const;

  // Bucket counts from the lowest; as many as the largest sample needs.
  [[nodiscard]] std::span<const std::uint64_t> buckets() const { return buckets_; }
  // The smallest value that falls into a bucket.
  [[nodiscard]] static Micros bucket_floor(std::size_t index);
  [[nodiscard]] static std::size_t bucket_of(Micros sample);

  bool operator==(const Histogram&) const = default;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  Micros min_ = longest;
  Micros max_{0};
  Micros sum_{0};
};

}  // namespace neap::measure
