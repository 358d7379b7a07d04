// Whether what a guard lends is worth the trouble, or sharing gains nothing (SPEC F1).
#pragma once

#include <cstdint>
#include <string>

#include "simulate/guard/backtest.h"

namespace neap::assess {

struct LendingSpec {
  std::int64_t least_ppm = 100'000;  // usable, of the device time of the peak: less is no gain
  // A device that is lent for less is back before work on it has paid: the time for which a task
  // is protected (preempt.protect_min).
  Micros shortest = minutes(30);
};

struct Lending {
  // Of the device time that inference would hold by itself, sized to its peak (the pool's, where
  // that is smaller): what guard and buffer leave of it. Devices beyond are training's anyway.
  std::int64_t lent_ppm = 0;
  std::int64_t usable_ppm = 0;          // in stretches that are long enough
  std::int64_t mean_over_peak_ppm = 0;  // of the demand
  bool gain = false;
  std::string verdict;  // "gain: ..." or "no gain: ..."
};

// Of the scored slots of a back-test.
[[nodiscard]] Lending lending_of(const LendingSpec& spec, const simulate::BacktestSpec& tested,
                                 const simulate::SlotDemand& demand,
                                 const simulate::Backtest& result);

}  // namespace neap::assess
