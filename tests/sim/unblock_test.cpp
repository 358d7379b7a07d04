// F6: a change that neap says would start a waiting task does start it, tried on what a restart
// would read back, at moments of runs in which things go wrong.
#include <gtest/gtest.h>

#include "core/rules/explain.h"
#include "core/what_if.h"
#include "tests/sim/weather.h"

namespace neap::sim {
namespace {

struct Tally {
  std::map<Unblock::Kind, int> kinds;
  std::vector<std::string> broken;
  int events = 0;

  void look(const PoolState& state, Time now) {
    constexpr int every = 40;
    if (++events % every != 0) return;
    std::vector<TaskId> waiting;
    state.tasks.for_each([&](const TaskState& task) {
      if (task.phase == Phase::waiting && task.shape.valid()) waiting.push_back(task.id);
    });
    if (waiting.empty()) return;
    const TaskId id = waiting[static_cast<std::size_t>(events / every) % waiting.size()];
    const Unblock unblock = find_unblock(state, id, now);
    ++kinds[unblock.kind];
    if (unblock.kind == Unblock::Kind::unknown) return;
    Result<PoolState> copy = decode_snapshot(encode_snapshot(state));
    ASSERT_TRUE(copy.has_value());
    apply_unblock(*copy, unblock, now);
    const TaskState* task = copy->tasks.find(id);
    if (task != nullptr && task->phase != Phase::waiting) return;
    broken.push_back(state.tasks.at(id).spec.name + " (" +
                     std::string(name_of(wait_code_of(state, state.tasks.at(id)))) +
                     "): " + to_text(state, unblock));
  }
};

TEST(Unblock, F6_TheStatedChangeStartsTheTask) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Planted watched;
    watched.step = [&](PoolState& state, Time now, const Event& event, StepResult& result) {
      step(state, now, event, result);
      tally.look(state, now);
    };
    ASSERT_TRUE(run_seed(seed, watched).violations.empty()) << "seed " << seed;
    ASSERT_TRUE(tally.broken.empty()) << "seed " << seed << ": " << tally.broken.front();
  }
  EXPECT_GT(tally.kinds[Unblock::Kind::end_tasks], 50);
  EXPECT_GT(tally.kinds[Unblock::Kind::add_devices], 5);
  EXPECT_GE(tally.kinds[Unblock::Kind::in_time], 1);
  EXPECT_LT(tally.kinds[Unblock::Kind::unknown], tally.kinds[Unblock::Kind::end_tasks]);
}

}  // namespace
}  // namespace neap::sim
