#include "daemon/placement_learner.h"

#include <sys/resource.h>

#include <utility>

#include "simulate/leftover/learn_pool.h"

namespace neap::daemon {

void PlacementLearner::note(const PoolState& state) {
  if (!learning_is_due(state) || busy_.load() || state.demand.seen == begun_at_) return;
  begun_at_ = state.demand.seen;
  auto lesson = simulate::lesson_of(state);
  if (!lesson) return;
  busy_.store(true);
  thread_ = std::jthread([this, lesson = std::move(*lesson)] {
    ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: nothing waits for it
    post_(simulate::learn(lesson));
    busy_.store(false);
  });
}

}  // namespace neap::daemon
