// D8: a table is learned from what the pool itself was asked for.
#include "simulate/leftover/learn_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/rules/place/leftover_table.h"
#include "core/testing/script.h"

namespace neap::simulate {
namespace {

using neap::testing::Script;

class LearnPool : public ::testing::Test {
 protected:
  LearnPool() { script_.configure(); }

  void nodes(int count, int devices) {
    for (int n = 0; n < count; ++n) {
      script_.node("n" + std::to_string(n), "d" + std::to_string(n % 2), devices);
    }
  }
  void ask(std::int32_t count, MilliGpu share, std::int64_t times) {
    Request request;
    request.count = count;
    request.share = share;
    for (std::int64_t i = 0; i < times; ++i) note_demand(state().demand, request);
  }
  [[nodiscard]] PoolState& state() { return script_.state; }

  Script script_;
};

TEST_F(LearnPool, D8_NothingIsLearnedWithoutDemandOrDevices) {
  EXPECT_FALSE(lesson_of(state())) << "no devices, no demand";
  ask(1, whole_device, 10);
  EXPECT_FALSE(lesson_of(state())) << "no devices";
  nodes(2, 4);
  EXPECT_TRUE(lesson_of(state()));
  state().demand = {};
  EXPECT_FALSE(lesson_of(state())) << "no demand";
  // What no device of the pool could serve is none.
  Request other;
  other.models = {"H100-80G"};
  note_demand(state().demand, other);
  EXPECT_FALSE(lesson_of(state()));
}

TEST_F(LearnPool, D8_TheLessonIsTheDemandOnThePoolsNodes) {
  nodes(3, 4);
  ask(1, MilliGpu(500), 60);
  ask(1, whole_device, 36);
  ask(6, whole_device, 4);  // more than a node holds: two nodes with four each
  const auto lesson = lesson_of(state());
  ASSERT_TRUE(lesson);
  EXPECT_EQ(lesson->seen, 100);
  EXPECT_EQ(lesson->kinds.size(), 3U);
  EXPECT_EQ(lesson->workload.nodes.size(), 3U);
  EXPECT_EQ(lesson->workload.capacity(), 12'000);
  EXPECT_EQ(lesson->workload.models, (std::vector<std::string>{"A100-80G"}));
  EXPECT_EQ(lesson->workload.pods.size(), 104U) << "a gang counts once for each of its nodes";
  ASSERT_EQ(lesson->workload.classes.size(), 3U);
  EXPECT_EQ(lesson->workload.classes[0].count, 60);
  EXPECT_EQ(lesson->workload.classes[1].count, 36);
  EXPECT_EQ(lesson->workload.classes[2].count, 8);
  EXPECT_EQ(lesson->workload.classes[2].demand.count, 4);
  EXPECT_EQ(lesson->workload.typical, 3U) << "two of them are 92 %";
}

// What runs is not looked at: the lesson is about an empty pool.
TEST_F(LearnPool, D8_WhatRunsDoesNotChangeTheLesson) {
  nodes(2, 4);
  ask(1, MilliGpu(500), 50);
  const auto before = lesson_of(state());
  ASSERT_TRUE(before);
  const DemandBook demand = state().demand;
  ASSERT_TRUE(script_.submit(Script::training("a", 3)));
  script_.started("a");
  state().demand = demand;
  const auto after = lesson_of(state());
  ASSERT_TRUE(after);
  EXPECT_EQ(learn(*before)->table, learn(*after)->table);
}

// It runs beside the loop: a large pool and a long past may not make it long.
TEST_F(LearnPool, D8_TheLessonIsSmallWhateverThePool) {
  nodes(2'000, 8);
  for (int i = 0; i < 600; ++i) {
    Request request;
    request.cpu_milli = 1'000 + i;
    for (int t = 0; t < 25; ++t) note_demand(state().demand, request);
  }
  ASSERT_GT(state().demand.kinds.size(), 500U);
  const auto lesson = lesson_of(state());
  ASSERT_TRUE(lesson);
  EXPECT_LE(lesson->workload.nodes.size(), 600U);
  EXPECT_GE(lesson->workload.nodes.size(), 250U);
  EXPECT_LE(lesson->workload.pods.size(), 4'000U + most_demand_kinds);
  // Each kind is among the pods, as rare as it may be.
  EXPECT_EQ(lesson->workload.classes.size(), state().demand.kinds.size());
  EXPECT_TRUE(std::all_of(lesson->workload.classes.begin(), lesson->workload.classes.end(),
                          [](const TaskClass& c) { return c.count > 0; }));
}

TEST_F(LearnPool, D8_TheSameLessonGivesTheSameTable) {
  nodes(8, 4);
  ask(1, MilliGpu(300), 400);
  ask(1, MilliGpu(500), 300);
  ask(2, whole_device, 300);
  const auto lesson = lesson_of(state());
  ASSERT_TRUE(lesson);
  const PlacementLearned first = *learn(*lesson);
  EXPECT_EQ(first.table, learn(*lesson)->table);
  // A replay has another state object of the same content.
  const PoolState copy(state());
  EXPECT_EQ(first.table, learn(*lesson_of(copy))->table);
  // Another demand, another table: the test could not fail otherwise.
  state().demand = {};
  ask(1, MilliGpu(700), 1'000);
  EXPECT_NE(first.table, learn(*lesson_of(state()))->table);
}

// As many models as there are bits for them: a task that names none may still take any.
TEST_F(LearnPool, D8_SixtyFourModels) {
  for (int m = 0; m < leftover::most_models; ++m) {
    script_.node("n" + std::to_string(m), "d0", 1, MiB(81'920), "M" + std::to_string(m) + "-80G");
  }
  ask(1, whole_device, 10);
  const auto lesson = lesson_of(state());
  ASSERT_TRUE(lesson);
  EXPECT_EQ(lesson->workload.classes.at(0).demand.models, 0U);
}

TEST_F(LearnPool, D8_ALessonThatIsAskedToStopGivesNothing) {
  nodes(8, 4);
  ask(1, MilliGpu(300), 400);
  std::stop_source source;
  EXPECT_TRUE(learn(*lesson_of(state()), source.get_token()));
  source.request_stop();
  EXPECT_FALSE(learn(*lesson_of(state()), source.get_token()));
}

// A whole free device is worth more where whole devices are what nobody asks for.
TEST_F(LearnPool, D8_WhatNobodyAsksForStaysFree) {
  nodes(8, 4);
  ask(1, MilliGpu(700), 1'000);
  const auto table = leftover::table_of(learn(*lesson_of(state()))->table);
  // Beside a task of 700 a part of 300 stays: no task fits there. One of 1000 is taken.
  const auto& row = table.values.back();
  const auto part_left = [&](std::int32_t milli) {
    return static_cast<double>(row[leftover::step_of(milli)]) /
           static_cast<double>(milli * leftover::potential_unit);
  };
  EXPECT_GT(part_left(300), 0.5);
  EXPECT_LT(part_left(1'000), part_left(300));
}

TEST_F(LearnPool, D8_ThePoolTakesTheTable) {
  nodes(4, 4);
  ask(1, MilliGpu(500), 600);
  ask(1, whole_device, 500);
  ASSERT_TRUE(learning_is_due(state()));
  const auto lesson = lesson_of(state());
  ASSERT_TRUE(lesson);
  const PlacementLearned learned = *learn(*lesson);
  EXPECT_TRUE(leftover::is_table(learned.table));
  EXPECT_EQ(learned.seen, 1'100);
  const auto taken = script_.event(learned);
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ(state().basis.table, learned.table);
  EXPECT_FALSE(learning_is_due(state()));
  // More was asked for meanwhile: a lesson that comes late is taken as well.
  ask(1, whole_device, 1'100);
  EXPECT_TRUE(learning_is_due(state()));
  EXPECT_TRUE(script_.event(*learn(*lesson_of(state()))));
}

}  // namespace
}  // namespace neap::simulate
