// One way in which the pool may go on: its own core, with remaining durations that are drawn.
// Nothing new arrives, nothing breaks, and services keep the replicas that they have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "core/engine.h"
#include "core/model/state.h"
#include "simulate/forecast/history.h"
#include "trace/chance.h"

namespace neap::forecast {

struct Limits {
  Micros horizon = hours(24 * 14);
  std::int64_t events = 200'000;  // of one replay
};

// Where each boundary of tasks can make no difference, because all that live are of one tier and
// none is asked to yield for another, they do not report checkpoints. To be copied for replays.
[[nodiscard]] PoolState ready_for_replays(const PoolState& state);

class Replay {
 public:
  // `state` is the caller's copy: it is changed. `now` is not before its last record.
  Replay(PoolState& state, Time now, const History& history, std::uint64_t seed);

  // When each of these waiting tasks (sorted) gets devices; never: not within the limits. Nothing
  // when it was asked to stop.
  [[nodiscard]] std::optional<std::vector<Time>> run(const std::vector<TaskId>& asked,
                                                     const Limits& limits,
                                                     const std::stop_token& stop);

 private:
  enum class Report : std::uint8_t { started, healthy, saved, finished, yielded, stopped };
  struct Entry {
    Time at;
    std::uint64_t order = 0;
    TaskId task;
    std::uint32_t plan = 0;
    Report report{};
    bool operator<(const Entry& other) const {  // the queue gives the largest first
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Work {
    std::uint32_t plan = 0;  // reports of earlier plans do not come any more
    std::optional<Micros> total;
    Time end = Time::never();  // of this allocation, by itself
  };

  void take_up(const TaskState& task);
  void plan(const TaskState& task, Report report, Time at);
  void run_on(const TaskState& task);
  void plan_save(const TaskState& task, Time captured);
  void happen(const Entry& entry);
  void save(const TaskState& task, Time captured);
  void exit(const TaskState& task, std::int32_t code, std::int32_t signal);
  void apply(const Event& event);
  void follow(const Action& action);
  [[nodiscard]] const TaskState* holder(AllocationId allocation) const;

  PoolState& state_;
  const History& history_;
  trace::Chance chance_;
  Time now_;
  StepResult result_;
  std::priority_queue<Entry> queue_;
  std::uint64_t order_ = 0;
  std::unordered_map<TaskId, Work> work_;
  std::vector<std::pair<TaskId, Time>> placed_;
};

}  // namespace neap::forecast
