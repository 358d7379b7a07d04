// The ranking that grows with the pool answers as one that is built anew: whatever arrived, left
// or was learned on the way.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "core/model/pool_index.h"
#include "core/rules/place.h"
#include "core/rules/place/leftover_table.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

int below(int n) { return *rc::gen::inRange(0, n); }

class Pool {
 public:
  Pool() {
    script_.spec.inference_guard_min = 1;
    script_.spec.elastic_buffer = 1;
    script_.configure();
    for (int n = 0; n < 6; ++n) {
      const bool small = n % 3 == 2;
      script_.node("n" + std::to_string(n), "d" + std::to_string(n % 2), 1 + n % 4,
                   MiB(small ? 16'384 : 81'920), small ? "T4-16G" : "A100-80G");
    }
  }

  void disturb() {
    switch (below(8)) {
      case 0:
      case 1:
        leave();
        break;
      case 2:
        learn();
        break;
      default:
        arrive();
    }
  }

  [[nodiscard]] PoolState& state() { return script_.state; }

  [[nodiscard]] Shape any_shape() const {
    Shape shape;
    shape.request = any_request();
    shape.purpose = below(3) == 0 ? Purpose::inference : Purpose::batch;
    shape.tier = TierId(shape.purpose == Purpose::inference ? 0 : 3);
    shape.releasable = below(2) == 0;
    return shape;
  }

 private:
  static Request any_request() {
    Request request;
    request.count = 1 + below(3);
    if (below(2) == 0) {
      request.share = MilliGpu(100 * (1 + below(9)));
      request.memory = MiB(1'000 * (1 + below(20)));
    }
    if (below(5) == 0) request.models = {"T4-16G"};
    return request;
  }

  void arrive() {
    TaskSpec task = Script::training("t" + std::to_string(next_++));
    task.request = any_request();
    const std::string name = task.name;
    if (!script_.submit(task)) return;
    if (script_.task(name).phase == Phase::starting) {
      script_.started(name);
      running_.push_back(name);
    }
  }

  void leave() {
    if (running_.empty()) return;
    const auto at = running_.begin() + below(static_cast<int>(running_.size()));
    if (script_.task(*at).phase == Phase::running) script_.exited(*at, 0);
    running_.erase(at);
  }

  void learn() {
    std::vector<std::int32_t> table(leftover::core_rows * leftover::idle_steps);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = below(3'000'000);
    RC_ASSERT(script_.event(PlacementLearned{state().demand.seen, state().demand.kinds, table}));
  }

  Script script_;
  int next_ = 0;
  std::vector<std::string> running_;
};

bool answers_alike(const PoolState& state, const Shape& shape) {
  const Placement kept = place(state, shape);
  const Placement anew = place(PoolState(state), shape);
  return kept.slots == anew.slots && kept.why == anew.why;
}

RC_GTEST_PROP(PlacementIndex, D8_kept_up_to_date_it_answers_as_one_built_anew, ()) {
  Pool pool;
  for (int i = 0; i < 60; ++i) {
    pool.disturb();
    RC_ASSERT(answers_alike(pool.state(), pool.any_shape()));
  }
}

// The same check finds an index that misses what has changed.
TEST(PlacementIndex, D8_the_check_notices_a_change_that_was_missed) {
  Script script;
  script.configure();
  script.node("a", "d", 2);
  Shape one;
  one.purpose = Purpose::batch;
  one.tier = TierId(3);
  ASSERT_TRUE(script.submit(Script::training("t", 2)));
  script.started("t");
  ASSERT_TRUE(answers_alike(script.state, one));
  script.exited("t", 0);
  script.state.index->placement_touched = IdSet();
  EXPECT_FALSE(answers_alike(script.state, one));
}

}  // namespace
}  // namespace neap
