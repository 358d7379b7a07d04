#include "simulate/forecast/calibration.h"

#include <algorithm>
#include <vector>

namespace neap::forecast {

namespace {

__extension__ using Wide = __int128;

// Added to waits, foretold and real, so that a foretold wait of nothing has a ratio too.
constexpr Micros slack = minutes(1);
constexpr std::int64_t least_factor = 125, most_factor = 8'000;
constexpr std::int64_t whole = 1'000'000'000;

std::int64_t ratio_of(Micros real, Micros foretold) {
  const Wide ratio = Wide{(real + slack).value} * 1'000 / (foretold + slack).value;
  return static_cast<std::int64_t>(std::min(ratio, Wide{1'000'000'000}));
}

struct Score {
  std::int64_t ratio = 0;
  bool waits = false;  // still: its ratio is this or more
  bool operator<(const Score& other) const {
    return ratio != other.ratio ? ratio < other.ratio : waits < other.waits;
  }
};

Time stretched(Time made, Time foretold, std::int64_t factor) {
  if (foretold == Time::never()) return foretold;
  const Wide wait = Wide{(foretold - made + slack).value} * factor / 1'000 - slack.value;
  return made + Micros(static_cast<std::int64_t>(std::max(wait, Wide{0})));
}

}  // namespace

void Calibration::settle(const PoolState& state, Time now) {
  std::erase_if(noted_, [&](Noted& noted) {
    if (noted.placed != Time::never()) return false;
    const TaskState* task = state.tasks.find(noted.task);
    if (task == nullptr) return true;
    if (task->placed_at > noted.made) {
      noted.placed = task->placed_at;
    } else if (task->phase == Phase::waiting) {
      noted.seen = now;
    } else {
      return true;  // it was cancelled
    }
    return false;
  });
  factor_p50_ = factor(500, &Noted::p50);
  factor_p90_ = factor(900, &Noted::p90);
}

void Calibration::note(const Forecast& forecast) {
  std::vector<std::size_t> order(forecast.starts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = 0; i < std::min(noted_at_once, order.size()); ++i) {
    std::swap(order[i], order[i + chance_.below(order.size() - i)]);
    const Start& start = forecast.starts[order[i]];
    noted_.push_back(
        {start.task, forecast.made, start.p50, start.p90, Time::never(), forecast.made});
  }
  while (noted_.size() > kept) noted_.pop_front();
}

std::int64_t Calibration::factor(std::int64_t level_per_mille, Time Noted::*foretold) const {
  std::vector<Score> scores;
  std::size_t outcomes = 0;
  for (const Noted& noted : noted_) {
    if (noted.*foretold == Time::never()) continue;
    const bool waits = noted.placed == Time::never();
    const Time until = waits ? noted.seen : noted.placed;
    scores.push_back({ratio_of(until - noted.made, noted.*foretold - noted.made), waits});
    outcomes += waits ? 0 : 1;
  }
  if (outcomes < enough) return 1'000;
  std::sort(scores.begin(), scores.end());
  std::int64_t beyond = whole;  // the part of all whose ratio is larger, by Kaplan and Meier
  std::int64_t factor = scores.back().ratio;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].waits) continue;
    const auto at_risk = static_cast<std::int64_t>(scores.size() - i);
    beyond = beyond / at_risk * (at_risk - 1) + beyond % at_risk * (at_risk - 1) / at_risk;
    if (beyond * 1'000 > whole * (1'000 - level_per_mille)) continue;
    factor = scores[i].ratio;
    break;
  }
  return std::clamp(factor, least_factor, most_factor);
}

Forecast Calibration::corrected(const Forecast& forecast) const {
  Forecast out = forecast;
  for (Start& start : out.starts) {
    start.p50 = stretched(out.made, start.p50, factor_p50_);
    start.p90 = std::max(start.p50, stretched(out.made, start.p90, factor_p90_));
  }
  return out;
}

}  // namespace neap::forecast
