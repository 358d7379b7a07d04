// The same buckets as Histogram, of which only those that hold something are kept: a slice of a
// sliding window has few distinct ones, and there are many slices.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/units.h"
#include "measure/histogram.h"

namespace neap::measure {

class SparseHistogram {
 public:
  void record(Micros sample);
  // Equal to recording each sample there, min, max and sum included.
  void add_to(Histogram& into) const;
  void clear();

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> buckets_;  // index, samples; by index
  std::uint64_t count_ = 0;
  Micros min_ = Histogram::longest;
  Micros max_{0};
  Micros sum_{0};
};

}  // namespace neap::measure
