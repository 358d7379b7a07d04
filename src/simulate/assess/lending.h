// Whether what a guard lends is worth the trouble, or sharing gains nothing (SPEC F1).
#pragma once

#include <cstdint>
#include <string>

#include "simulate/guard/backtest.h"

namespace neap::assess {

struct LendingSpec {
  std::int64_t least_ppm = 100'000;  // of the pool's device time, usable: less is no gain
  // A device that is lent for less is back before work on it has paid: the time for which a task
  // is protected (preempt.protect_min).
  Micros shortest = minutes(30);
};

struct Lending {
  std::int64_t lent_ppm = 0;            // of the pool's device time, above guard and buffer
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
