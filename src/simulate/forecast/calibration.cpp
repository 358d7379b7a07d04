#include "simulate/forecast/calibration.h"

#include <algorithm>
#include <utility>

namespace neap::forecast {

namespace {

// Added to waits, foretold and real: of a short wait that took an hour longer, a wait of days
// learns no factor of six.
constexpr Micros slack = hours(1);
constexpr std::int64_t all = 1'000;
constexpr std::int64_t most_rank = 1'500;  // more covered nothing more, and cost (0014)
// Hundred-thousandths.
constexpr std::int64_t level_step = 50, least_level = 60'000, most_level = 99'500;
constexpr std::int64_t whole = 1'000'000'000;

// Of a start among the draws: the smallest rank that is not before it.
std::int64_t rank_of(Time start, Time made, const std::vector<Time>& draws) {
  const auto not_before = std::lower_bound(draws.begin(), draws.end(), start);
  if (not_before != draws.end()) {
    const auto rank = static_cast<std::int64_t>(not_before - draws.begin()) + 1;
    return rank * all / static_cast<std::int64_t>(draws.size());
  }
  const Wide factor =
      Wide{(start - made + slack).value} * all / (draws.back() - made + slack).value;
  return static_cast<std::int64_t>(std::clamp(factor, Wide{all + 1}, Wide{most_rank}));
}

Time at_rank(std::int64_t rank, Time made, const std::vector<Time>& draws) {
  if (rank <= all || draws.back() == Time::never()) return at_per_mille(draws, std::min(rank, all));
  const Wide wait = Wide{(draws.back() - made + slack).value} * rank / all - slack.value;
  return made + Micros(static_cast<std::int64_t>(wait));
}

struct Score {
  std::int64_t rank = 0;
  bool waits = false;  // still: its rank is this or more
  bool operator<(const Score& other) const {
    return rank != other.rank ? rank < other.rank : waits < other.waits;
  }
};

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
    count(noted);
    return false;
  });
  rank_p90_ = rank_at(level_ / 100);
}

// Too late is known while it waits, in time only once it has started.
void Calibration::count(Noted& noted) {
  const bool waits = noted.placed == Time::never();
  const bool late = (waits ? noted.seen : noted.placed) > noted.p90;
  if (noted.counted || (waits && !late)) return;
  noted.counted = true;
  level_ = std::clamp(level_ + (late ? 9 * level_step : -level_step), least_level, most_level);
}

void Calibration::note(const Forecast& forecast) {
  if (forecast.made - noted_last_ < between_notes) return;
  noted_last_ = forecast.made;
  std::vector<std::size_t> order(forecast.starts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t some = std::clamp(order.size() / 2, least_noted, most_noted);
  for (std::size_t i = 0; i < std::min(some, order.size()); ++i) {
    std::swap(order[i], order[i + chance_.below(order.size() - i)]);
    const Start& start = forecast.starts[order[i]];
    const Time p90 = std::max(start.p50, at_rank(rank_p90_, forecast.made, start.draws));
    noted_.push_back({start.task, forecast.made, start.draws, p90, Time::never(), forecast.made});
  }
  while (noted_.size() > kept) noted_.pop_front();
}

std::int64_t Calibration::rank_at(std::int64_t level_per_mille) const {
  std::vector<Score> scores;
  std::size_t outcomes = 0;
  for (const Noted& noted : noted_) {
    const bool waits = noted.placed == Time::never();
    scores.push_back({rank_of(waits ? noted.seen : noted.placed, noted.made, noted.draws), waits});
    outcomes += waits ? 0 : 1;
  }
  if (outcomes < enough) return level_per_mille;
  for (std::int64_t i = 1; i <= trusted; ++i) scores.push_back({all * i / trusted, false});
  std::sort(scores.begin(), scores.end());
  std::int64_t beyond = whole;  // the part of all whose rank is larger, by Kaplan and Meier
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].waits) continue;
    const auto at_risk = static_cast<std::int64_t>(scores.size() - i);
    beyond = beyond / at_risk * (at_risk - 1) + beyond % at_risk * (at_risk - 1) / at_risk;
    if (beyond * all <= whole * (all - level_per_mille)) return scores[i].rank;
  }
  return scores.back().rank;
}

Forecast Calibration::corrected(const Forecast& forecast) const {
  Forecast out;
  out.made = forecast.made;
  out.draws = forecast.draws;
  out.starts.reserve(forecast.starts.size());
  for (const Start& start : forecast.starts) {
    const Time p90 = at_rank(rank_p90_, out.made, start.draws);
    out.starts.push_back({start.task, start.p50, std::max(start.p50, p90), {}});
  }
  return out;
}

}  // namespace neap::forecast
