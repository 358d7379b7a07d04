// Samples by slices of time: "the last minute" for decisions and displays, and closed slices
// (10 s, aligned to the clock) for the journal.
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/units.h"
#include "measure/histogram.h"

namespace neap::measure {

// The newest `slices` slices of one length. Time may stand still or go back a little: a sample
// older than the oldest slice kept is counted in the oldest.
class SlidingHistogram {
 public:
  SlidingHistogram(Micros slice_length, std::size_t slices);

  void record(Time at, Micros sample);
  // Samples of the last `length` before `now`, rounded up to whole slices (the running one is
  // the first), at most all that is kept.
  [[nodiscard]] Histogram over(Time now, Micros length) const;

 private:
  struct Slice {
    std::int64_t number = -1;  // at / slice_length_
    Histogram samples;
  };

  Micros slice_length_;
  std::int64_t newest_ = -1;
  std::vector<Slice> ring_;
};

// What a replica answered within one slice: the unit in which requests are journalled.
struct RequestTotals {
  std::uint64_t responses = 0;   // complete answers, any status
  std::uint64_t within_slo = 0;  // of these: good ones whose first body byte came in time
  std::uint64_t failures = 0;    // status 5xx, or cut off by the replica's end
  Micros busy{0};                // time for which the replica worked on responses
  Micros busy_within_slo{0};     // of this: on those within the SLO

  RequestTotals& operator+=(const RequestTotals& other);
  bool operator==(const RequestTotals&) const = default;
};

// The start of the slice that a moment is in; slices are aligned to the epoch.
[[nodiscard]] Time slice_start(Time at, Micros slice_length);

}  // namespace neap::measure
