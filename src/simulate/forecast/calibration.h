// What forecasts have been worth: arrivals that nobody knew of, and lengths that were drawn wrong,
// show in where among the draws the real starts come. The rank before which nine of ten came is p90
// from then on. Beyond the last draw the rank goes on as the factor by which a wait is longer than
// that one. (Split conformal prediction with a score that grows with the wait, Vovk et al. 2005, on
// a rolling window; those that wait still are censored observations, Kaplan, Meier 1958.) The
// level of nine in ten is moved itself by each forecast that was shown, up by one that was too
// short and down by one that was not, until one in ten is: outcomes of one hour resemble each other
// (adaptive conformal inference, Gibbs, Candès 2021). p50 is left as it is: correcting it made
// forecasts worse (docs/decisions/0014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/model/state.h"
#include "simulate/forecast/forecast.h"
#include "trace/chance.h"

namespace neap::forecast {

class Calibration {
 public:
  static constexpr std::size_t kept = 2'048;  // forecasts, of one task at one moment each
  static constexpr std::size_t enough = 10;   // outcomes before anything is corrected
  // Half of those that wait, so that long queues count as what they are, within these bounds.
  static constexpr std::size_t least_noted = 16, most_noted = 256;
  static constexpr Micros between_notes = minutes(30);
  // As if so many forecasts had been right: a few outcomes of one bad hour do not tell all.
  static constexpr std::int64_t trusted = 50;

  explicit Calibration(std::uint64_t seed) : chance_(seed) {}

  // What became of the forecasts noted before, as far as the state knows it.
  void settle(const PoolState& state, Time now);
  // Notes some of them, drawn evenly, as they were before any correction; not more often than every
  // half an hour, so that what is kept covers waits of days.
  void note(const Forecast& forecast);
  // Without its draws.
  [[nodiscard]] Forecast corrected(const Forecast& forecast) const;
  // In thousandths: up to 1000 a part of the draws, above it a factor on the last one.
  [[nodiscard]] std::int64_t rank_p90() const { return rank_p90_; }

 private:
  struct Noted {
    TaskId task;
    Time made;
    std::vector<Time> draws;
    Time p90;  // as it was shown
    Time placed = Time::never();
    Time seen;             // it waited until then at least
    bool counted = false;  // for the level
  };
  void count(Noted& noted);
  [[nodiscard]] std::int64_t rank_at(std::int64_t level_per_mille) const;

  trace::Chance chance_;
  std::deque<Noted> noted_;
  Time noted_last_ = Time(-between_notes.value);
  std::int64_t level_ = 90'000;  // hundred-thousandths
  std::int64_t rank_p90_ = 900;
};

}  // namespace neap::forecast
