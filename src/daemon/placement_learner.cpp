#include "daemon/placement_learner.h"

#include <sys/resource.h>

#include <utility>

#include "simulate/leftover/learn_pool.h"

namespace neap::daemon {

// From its beginning until the loop has applied what it gave: posted is not enough, for records
// that were applied before it are noted later.
bool PlacementLearner::is_awaited(const PoolState& state) const {
  return begun_at_ > 0 && (state.basis.table.empty() || state.basis.seen < begun_at_);
}

void PlacementLearner::note(const PoolState& state) {
  const std::int64_t seen = state.demand.seen;
  if (!learning_is_due(state) || seen == looked_at_ || is_awaited(state)) return;
  looked_at_ = seen;
  auto lesson = simulate::lesson_of(state);
  if (!lesson) return;
  begun_at_ = seen;
  // The thread of the lesson before has nothing left to do.
  thread_ = std::jthread([this, lesson = std::move(*lesson)](const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: nothing waits for it
    if (auto learned = simulate::learn(lesson, stop)) post_(std::move(*learned));
  });
}

}  // namespace neap::daemon
