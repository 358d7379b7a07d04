// What two clusters would gain from sharing one pool, before anything is merged (SPEC F1): from the
// recorded use of both, with integers alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/model/result.h"
#include "simulate/assess/use_trace.h"

namespace neap::assess {

struct AssessSpec {
  std::int64_t training_devices = 0;   // of the cluster; 0: what it used at most
  std::int64_t inference_devices = 0;  // likewise
  Ppm interruptible{1'000'000};        // of training work: may yield at a boundary
  Ppm reserve{100'000};                // kept free above what inference uses
  Micros lead = minutes(10);           // until devices that were lent are back
  Micros switch_cost = minutes(5);     // device time lost to one device changing sides, and back
  Micros most_delay = hours(24);       // that training work may be put off by
  Ppm least_gain{50'000};              // of the devices of both: less is no gain
};

// The answer is no gain where `gain` is none.
enum class Gain : std::uint8_t { none, limited, full };

struct Assessment {
  std::int64_t slots = 0;
  std::int64_t apart = 0;     // devices of both clusters
  std::int64_t together = 0;  // the fewest that serve both
  std::int64_t saved = 0;
  std::int64_t use_apart_ppm = 0, use_together_ppm = 0;
  // By hour of the day from the first slot on: mean devices in use, in thousandths.
  std::array<std::int64_t, 24> training{}, inference{};
  // (peak of one + peak of the other - peak of the sum) / the smaller peak, of the hourly curves:
  // 0: both peak at once; 1'000'000: the smaller fits into the troughs of the larger.
  std::int64_t complementary_ppm = 0;
  std::int64_t mean_over_peak_ppm = 0;  // of inference
  std::int64_t switches_per_day_milli = 0;
  std::int64_t switching_ppm = 0;  // of the pool's device time
  Micros longest_delay{0};         // of training work
  Gain gain = Gain::none;
  std::string verdict;  // one sentence
};

// Refuses traces of less than a day or of different slots, and settings out of range, by field.
[[nodiscard]] Result<Assessment> assess(const AssessSpec& spec, const UseTrace& training,
                                        const UseTrace& inference);

}  // namespace neap::assess
