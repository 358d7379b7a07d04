#include "simulate/forecast/forecast.h"

#include <algorithm>

namespace neap::forecast {

namespace {

// The nearest rank: the smallest value that the part p of all does not exceed.
Time at_percent(const std::vector<Time>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

const Start* Forecast::of(TaskId task) const {
  const auto found =
      std::lower_bound(starts.begin(), starts.end(), task,
                       [](const Start& start, TaskId id) { return start.task < id; });
  return found == starts.end() || found->task != task ? nullptr : &*found;
}

StartForecast::StartForecast(const PoolState& state, Time now, const History& history,
                             std::uint64_t seed, Limits limits)
    : ready_(ready_for_replays(state)),
      now_(std::max(now, state.now)),
      history_(history),
      seeds_(seed),
      limits_(limits) {
  ready_.tasks.for_each([this](const TaskState& task) {
    if (task.phase == Phase::waiting && task.shape.valid()) asked_.push_back(task.id);
  });
  std::sort(asked_.begin(), asked_.end());
  starts_.resize(asked_.size());
}

bool StartForecast::draw(const std::stop_token& stop) {
  PoolState copy(ready_);
  Replay replay(copy, now_, history_, seeds_.next());
  const auto starts = replay.run(asked_, limits_, stop);
  if (!starts) return false;
  for (std::size_t i = 0; i < asked_.size(); ++i) starts_[i].push_back((*starts)[i]);
  ++draws_;
  return true;
}

Forecast StartForecast::result() const {
  Forecast out;
  out.made = now_;
  out.draws = draws_;
  if (draws_ == 0) return out;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    std::vector<Time> sorted = starts_[i];
    std::sort(sorted.begin(), sorted.end());
    out.starts.push_back({asked_[i], at_percent(sorted, 50), at_percent(sorted, 90)});
  }
  return out;
}

}  // namespace neap::forecast
