// When the tasks that wait will start: p50 and p90 over replays of a copy of the state (POLICIES
// 8).
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/model/state.h"
#include "simulate/forecast/history.h"
#include "simulate/forecast/replay.h"

namespace neap::forecast {

inline constexpr int usual_draws = 50;

struct Start {
  TaskId task;
  Time p50, p90;            // never: not within the limits of a replay
  std::vector<Time> draws;  // sorted; left out where nobody corrects them any more
};

struct Forecast {
  Time made;
  int draws = 0;
  std::vector<Start> starts;  // sorted by task
  [[nodiscard]] const Start* of(TaskId task) const;
};

// The nearest rank: the smallest of the draws (sorted, not empty) that `per_mille` of them do not
// exceed.
[[nodiscard]] Time at_per_mille(const std::vector<Time>& draws, std::int64_t per_mille);

// Draws one after the other, so that who waits for them may stop at any number.
class StartForecast {
 public:
  // Of all that wait and were admitted. `history` outlives it.
  StartForecast(const PoolState& state, Time now, const History& history, std::uint64_t seed,
                Limits limits = {});

  // False: it was asked to stop, and this draw does not count.
  bool draw(const std::stop_token& stop = {});
  [[nodiscard]] bool nobody_waits() const { return asked_.empty(); }
  [[nodiscard]] int draws() const { return draws_; }
  // By nearest rank; what did not start within the limits counts as later than all.
  [[nodiscard]] Forecast result() const;

 private:
  PoolState ready_;
  Time now_;
  const History& history_;
  trace::Chance seeds_;
  Limits limits_;
  std::vector<TaskId> asked_;
  std::vector<std::vector<Time>> starts_;  // by asked task
  int draws_ = 0;
};

}  // namespace neap::forecast
