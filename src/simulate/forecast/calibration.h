// What forecasts have been worth: arrivals that nobody knew of, and lengths that were drawn wrong,
// show in how much longer than foretold tasks have waited. By that factor later forecasts are
// stretched: split conformal prediction (Vovk et al. 2005) on a rolling window, with those that
// wait still as censored observations (Kaplan, Meier 1958).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/model/state.h"
#include "simulate/forecast/forecast.h"
#include "trace/chance.h"

namespace neap::forecast {

class Calibration {
 public:
  static constexpr std::size_t kept = 512;   // forecasts, of one task at one moment each
  static constexpr std::size_t enough = 30;  // outcomes before anything is stretched
  static constexpr std::size_t noted_at_once = 12;

  explicit Calibration(std::uint64_t seed) : chance_(seed) {}

  // What became of the forecasts noted before, as far as the state knows it.
  void settle(const PoolState& state, Time now);
  // Notes some of them, drawn evenly, as they were before any correction.
  void note(const Forecast& forecast);
  [[nodiscard]] Forecast corrected(const Forecast& forecast) const;
  // In thousandths, of waits from the moment of the forecast on; 1000: left as they are.
  [[nodiscard]] std::int64_t factor_p50() const { return factor_p50_; }
  [[nodiscard]] std::int64_t factor_p90() const { return factor_p90_; }

 private:
  struct Noted {
    TaskId task;
    Time made, p50, p90;
    Time placed = Time::never();
    Time seen;  // it waited until then at least
  };
  [[nodiscard]] std::int64_t factor(std::int64_t level_per_mille, Time Noted::*foretold) const;

  trace::Chance chance_;
  std::deque<Noted> noted_;
  std::int64_t factor_p50_ = 1'000, factor_p90_ = 1'000;
};

}  // namespace neap::forecast
