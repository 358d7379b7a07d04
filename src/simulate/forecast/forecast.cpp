#include "simulate/forecast/forecast.h"

#include <algorithm>
#include <utility>

namespace neap::forecast {

const Start* Forecast::of(TaskId task) const {
  const auto found =
      std::lower_bound(starts.begin(), starts.end(), task,
                       [](const Start& start, TaskId id) { return start.task < id; });
  return found == starts.end() || found->task != task ? nullptr : &*found;
}

Time at_per_mille(const std::vector<Time>& draws, std::int64_t per_mille) {
  const std::int64_t rank = (static_cast<std::int64_t>(draws.size()) * per_mille + 999) / 1'000;
  return draws[static_cast<std::size_t>(std::max<std::int64_t>(rank, 1) - 1)];
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
    const Time p50 = at_per_mille(sorted, 500);
    const Time p90 = at_per_mille(sorted, 900);
    out.starts.push_back({asked_[i], p50, p90, std::move(sorted)});
  }
  return out;
}

}  // namespace neap::forecast
