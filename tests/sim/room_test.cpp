// Room for large tasks under a stream of small ones (D6, D8) and consolidation at boundaries (C5,
// S6), on the simulator. Bounds are those of docs/decisions/0011.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

using simulated::Random;

// ---- a stream of small tasks -----------------------------------------------------------------

constexpr Micros shortest = hours(2), longest = hours(8);
constexpr int always_waiting = 4;

// Somebody who always has more small tasks waiting: whatever becomes free is asked for at once.
class SmallTasks {
 public:
  explicit SmallTasks(Site& site) : site_(site), random_(7) {}
  void start() { top_up(); }
  [[nodiscard]] std::int64_t made() const { return made_; }

 private:
  void top_up() {
    int waiting = 0;
    site_.state().tasks.for_each([&](const TaskState& task) {
      waiting += task.phase == Phase::waiting && task.spec.request.count == 1 ? 1 : 0;
    });
    for (; waiting < always_waiting; ++waiting) submit_one();
    site_.timeline().at(site_.now() + minutes(1), [this] { top_up(); });
  }

  void submit_one() {
    Job job{.name = "small-" + std::to_string(made_++),
            .length = random_.between(shortest, longest)};
    job.behaviour.step = minutes(30);
    job.behaviour.interval = hours(1);
    site_.submit(task_of(job));
  }

  Site& site_;
  Random random_;
  std::int64_t made_ = 0;
};

// A task of a whole node: when it came, by when the pool expected to have room for it, as it said
// when it first kept some, and when it started.
struct Large {
  std::string name;
  Time submitted;
  Time expected = Time::never();
  Time started = Time::never();
};

struct Weeks {
  std::vector<Large> large;
  std::int64_t small = 0;
};

// Nine days of a pool of four nodes of four. Every twelve hours comes a task of four
// devices, and every other day two at once.
Weeks some_weeks(const PoolSpec& pool) {
  Stage stage(pool, nodes_of(16, 4));
  SmallTasks small(*stage.operator->());
  small.start();
  Weeks weeks;
  for (int i = 0; i < 16; ++i) {
    const Micros after = i % 4 == 3 ? hours(12) * (i - 1) : hours(12) * i;
    Large large{.name = "large-" + std::to_string(i), .submitted = Time(0) + hours(6) + after};
    stage->timeline().at(large.submitted, [&stage, name = large.name] {
      stage->submit(task_of({.name = name, .length = hours(1), .devices = 4}));
    });
    weeks.large.push_back(large);
  }
  const Time end = Time(0) + hours(24 * 9);
  while (stage->now() < end && !::testing::Test::HasFailure()) {
    stage.run_for(minutes(1));
    for (Large& large : weeks.large) {
      if (large.started != Time::never() || stage->now() <= large.submitted) continue;
      const TaskState& task = stage.task(large.name);
      if (task.first_started > Time(0)) large.started = task.first_started;
      const auto plan = stage.state().plans.find(task.id);
      if (plan != stage.state().plans.end() && large.expected == Time::never()) {
        large.expected = plan->second.needed_by;
      }
    }
  }
  weeks.small = small.made();
  return weeks;
}

TEST(Room, D6_ALargeTaskUnderAStreamOfSmallOnesStartsWithinItsBound) {
  const PoolSpec pool = pool_with(0, 0);
  const Weeks weeks = some_weeks(pool);
  ASSERT_GT(weeks.small, 400) << "the stream never stops";
  // For the look that notices, for processes that start and for what reports take.
  constexpr Micros slack = minutes(5);
  Micros longest_wait{0};
  for (const Large& large : weeks.large) {
    ASSERT_NE(large.started, Time::never()) << large.name << " never started";
    const Micros waited = large.started - large.submitted;
    longest_wait = std::max(longest_wait, waited);
    EXPECT_LE(waited, pool.reserve.after + longest + slack) << large.name;
    if (large.expected != Time::never()) {
      EXPECT_LE(large.started, large.expected + slack) << large.name << " was promised more";
    }
  }
  std::printf("16 tasks of a whole node under %lld small ones: longest wait %lld min\n",
              static_cast<long long>(weeks.small),
              static_cast<long long>(longest_wait.value / minutes(1).value));
}

// The same without the rule: that is what the test above is there to notice.
TEST(Room, D6_WithoutRoomKeptTheyStarve) {
  PoolSpec pool = pool_with(0, 0);
  pool.reserve.most = 0;
  const Weeks weeks = some_weeks(pool);
  const auto starved =
      std::count_if(weeks.large.begin(), weeks.large.end(), [&](const Large& large) {
        return large.started == Time::never() ||
               large.started - large.submitted > pool.reserve.after + longest + minutes(5);
      });
  EXPECT_GT(starved, 10);
}

// ---- S6 --------------------------------------------------------------------------------------

// Eight devices with a long task of 30 % on each: in total five and a half are free, none as a
// whole.
class Fragmented {
 public:
  explicit Fragmented(PoolSpec pool, Site::Options options = {})
      : stage(pool, nodes_of(8, 4), options) {
    // Two tasks a device; then one of them goes, as many small allocations come and go.
    for (int i = 0; i < 16; ++i) {
      Job job{.name = (i % 2 == 0 ? "stays-" : "goes-") + std::to_string(i),
              .length = i % 2 == 0 ? hours(200) : hours(3)};
      job.behaviour.step = minutes(1);
      TaskSpec task = share_of(task_of(job), MiB(16 * 1024), MilliGpu(500));
      if (i % 2 == 0) task.request.share = MilliGpu(300);
      if (i % 2 == 0) task.work.reset();
      stage->submit(task);
      stage.run_for(seconds(20));
    }
  }
  Stage stage;
};

std::int64_t wholly_free(const PoolState& state) {
  return std::count_if(state.devices.begin(), state.devices.end(), [](const DeviceState& d) {
    return d.tenants.empty() && d.held_share == MilliGpu(0);
  });
}

TEST(Scenario, S6_ATaskThatFitsInTotalIsNotStuckConsolidationFreesIt) {
  Fragmented it(pool_with(0, 0));
  Stage& stage = it.stage;
  stage.run_for(hours(4));
  ASSERT_EQ(stage.holding("stays"), 8);
  ASSERT_EQ(stage.holding("goes"), 0);
  ASSERT_LT(wholly_free(stage.state()), 4);
  stage->submit(task_of({.name = "large", .length = hours(2), .devices = 4}));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("large"); }, hours(1)))
      << stage.reason("large");
  EXPECT_EQ(stage.holding("stays"), 8) << "who made room goes on elsewhere";
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("large") == Phase::finished; }, hours(4)));
  for (int i = 0; i < 16; i += 2) {
    const TaskState& task = stage.task("stays-" + std::to_string(i));
    EXPECT_EQ(task.lost, Micros(0)) << task.spec.name << " moved at a boundary";
    EXPECT_EQ(task.preemptions, 0) << task.spec.name << " was not preempted";
  }
}

TEST(Scenario, S6_WithoutConsolidationItIsStuck) {
  PoolSpec pool = pool_with(0, 0);
  pool.reserve.most = 0;
  pool.defragment.enabled = false;
  Fragmented it(pool);
  Stage& stage = it.stage;
  stage.run_for(hours(4));
  stage->submit(task_of({.name = "large", .length = hours(2), .devices = 4}));
  stage.run_for(hours(48));
  EXPECT_EQ(stage.phase("large"), Phase::waiting);
}

}  // namespace
}  // namespace neap::sim
