#include "core/rules/promise_text.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "core/rules/deadline.h"

namespace neap {

namespace {

std::string length_text(Micros length) {
  const std::int64_t all = (std::max<std::int64_t>(0, length.value) + 59'999'999) / 60'000'000;
  const std::string left = std::to_string(all % 60) + " min";
  return all < 60 ? left : std::to_string(all / 60) + " h " + left;
}

std::string issued_text(const PoolState& state, const TaskState& task) {
  const Micros left = task.start_by - state.now;
  if (left < Micros(0)) {
    return "a start was promised to it that is " + length_text(-left) +
           " late: the clock of promises stands while the pool is paused, its team is at its "
           "limit, or the lane has lost devices";
  }
  std::string text = "starts within " + length_text(left) + " at the latest";
  if (task.forced_at > state.now) {
    text += ": in " + length_text(task.forced_at - state.now) + " it goes before all others";
  } else {
    text += ": it goes before all others";
  }
  if (task.ahead > 0) {
    text += ", but for up to " + std::to_string(task.ahead) + " that were promised a start before";
  }
  return text;
}

std::string none_text(const PoolState& state, const TaskState& task) {
  switch (task.bound) {
    case BoundCode::not_batch:
      return "the lane of forced starts carries batch training alone";
    case BoundCode::dedicated:
      return "it uses the dedicated partition";
    case BoundCode::windows:
      return "it declares times at which it may not be preempted";
    case BoundCode::too_large:
      return "it does not fit the lane of forced starts (" +
             std::to_string(state.index->lane.size()) + " devices), were that empty";
    case BoundCode::constrained:
      return "where it may be depends on other tasks or on certain nodes (placement)";
    case BoundCode::infeasible:
      return "infeasible: with it, promises that were made to others would not hold";
    case BoundCode::requeued:
      return "it has started before, and with it promises of first starts would not hold";
    case BoundCode::none:
    case BoundCode::issued:
      break;
  }
  return "it was not looked at yet";
}

}  // namespace

std::string promise_text(const PoolState& state, const TaskState& task) {
  if (task.phase != Phase::waiting || task.purpose == Purpose::inference) return {};
  if (state.spec.fairness.lane > 0 && state.adoption.stage != AdoptionStage::time) {
    return "no start is promised in stage " + std::string(name_of(state.adoption.stage)) +
           " of adoption: the lane of forced starts (fairness.lane) begins with stage time";
  }
  if (task.bound == BoundCode::issued) return issued_text(state, task);
  if (state.spec.fairness.lane == 0) {
    return "no start is promised: the pool keeps no lane for forced starts (fairness.lane)";
  }
  std::string text = "no start is promised: " + none_text(state, task);
  if (task.forced_at == Time::never()) return text;
  return text + (task.forced_at > state.now
                     ? "; in " + length_text(task.forced_at - state.now) + " it goes before others"
                     : "; it goes before all to whom none is promised");
}

std::string deadline_text(const PoolState& state, const TaskState& task) {
  if (task.deadline == DeadlineVerdict::work_unknown) {
    return "the deadline was not accepted: how long it runs is not declared (work)";
  }
  if (task.deadline != DeadlineVerdict::too_soon) return {};
  std::string text = "the deadline was not accepted: its work and a restore";
  const Micros wait = expected_wait(state, task.tier);
  if (wait > Micros(0)) text += ", after a wait of " + length_text(wait) + " as is expected now,";
  return text + " end after it";
}

}  // namespace neap
