// Tasks with a range of devices (D6): placed with fewer, shrunk before others are preempted, grown
// where there is room.
#include "core/rules/resize.h"

#include <gtest/gtest.h>

#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap::resize_test {
namespace {

using testing::Script;

Script pool_of_eight() {
  Script s;
  s.configure();
  s.node("n0", "d0", 8);
  return s;
}

TaskSpec ranged(const std::string& name, int gpus, int least) {
  TaskSpec task = Script::training(name, gpus);
  task.request.least = least;
  return task;
}

TaskSpec near(TaskSpec task) {
  task.tier = "train_deadline_near";
  return task;
}

void run(Script& s, const TaskSpec& task) {
  ASSERT_TRUE(s.submit(task));
  ASSERT_EQ(s.task(task.name).phase, Phase::starting) << s.where(task.name);
  s.started(task.name);
}

TEST(Resize, D6_CountsAreHalvesDownToTheLeast) {
  const auto counts = [](int count, int least) {
    Request request;
    request.count = count;
    request.least = least;
    return fewer_devices(request);
  };
  EXPECT_EQ(counts(8, 2), (std::vector<std::int32_t>{4, 2}));
  EXPECT_EQ(counts(8, 3), (std::vector<std::int32_t>{4, 3}));
  EXPECT_EQ(counts(7, 1), (std::vector<std::int32_t>{4, 2, 1}));
  EXPECT_TRUE(counts(8, 0).empty());
  EXPECT_TRUE(counts(8, 8).empty());
}

TEST(Resize, D6_PlacedWithFewerWhereAllAreNotToBeHad) {
  Script s = pool_of_eight();
  run(s, Script::training("five", 5));
  ASSERT_TRUE(s.submit(ranged("some", 8, 2)));
  EXPECT_EQ(s.where("some"), "starting n0:5,6");
  const auto& start = std::get<StartTask>(s.last.actions.back());
  EXPECT_EQ(start.devices.size(), 2U);
  ASSERT_TRUE(s.submit(ranged("more", 8, 2)));
  EXPECT_EQ(s.task("more").phase, Phase::waiting);
}

TEST(Resize, D6_ItsWorkIsThatOfAllDevices) {
  Script s = pool_of_eight();
  run(s, Script::training("four", 4));
  TaskSpec task = ranged("some", 8, 2);
  task.work = hours(8);
  run(s, task);
  ASSERT_EQ(s.task("some").slots.size(), 4U);
  EXPECT_EQ(remaining_work(s.task("some"), s.now), hours(16));
  s.work(hours(2));
  EXPECT_EQ(remaining_work(s.task("some"), s.now), hours(14));
  s.exited("some", 75);
  EXPECT_EQ(s.task("some").done, hours(1));
}

TEST(Resize, D6_ItShrinksBeforeAnotherIsPreempted) {
  Script s = pool_of_eight();
  s.node("n1", "d0", 4);
  run(s, ranged("wide", 8, 2));
  run(s, Script::training("plain", 4));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(near(Script::training("urgent", 4))));
  EXPECT_EQ(s.task("plain").phase, Phase::running);
  EXPECT_EQ(s.task("wide").phase, Phase::yielding);
  EXPECT_EQ(s.task("wide").stop_reason, StopReason::resized);
  EXPECT_EQ(s.state.plans.at(s.task("wide").id).kind, PlanKind::resize);
  EXPECT_TRUE(index_is_current(s.state));
  s.work(minutes(10));
  s.exited("wide", 75);
  EXPECT_EQ(s.where("wide"), "starting n0:0,1,2,3");
  EXPECT_EQ(s.where("urgent"), "starting n0:4,5,6,7");
  EXPECT_EQ(s.task("wide").lost, Micros(0));
  EXPECT_EQ(s.task("wide").preemptions, 0);
  EXPECT_EQ(s.task("wide").preemptions_today, 0);
  EXPECT_EQ(s.task("wide").resizes, 1);
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Resize, D6_ItKeepsItsLeast) {
  Script s = pool_of_eight();
  run(s, ranged("wide", 8, 4));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(near(Script::training("urgent", 6))));
  // So much it does not give: it is preempted as others are.
  EXPECT_EQ(s.task("wide").stop_reason, StopReason::preempted);
}

TEST(Resize, D6_SeveralGiveTogether) {
  Script s = pool_of_eight();
  run(s, ranged("a", 4, 2));
  run(s, ranged("b", 4, 2));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::training("c", 4)));
  EXPECT_EQ(s.task("a").stop_reason, StopReason::resized);
  EXPECT_EQ(s.task("b").stop_reason, StopReason::resized);
  s.work(minutes(10));
  s.exited("a", 75);
  EXPECT_EQ(s.where("c"), "waiting yield_pending");
  s.started("a");
  s.exited("b", 75);
  EXPECT_EQ(s.task("c").phase, Phase::starting);
  EXPECT_EQ(s.task("a").slots.size() + s.task("b").slots.size(), 4U);
}

TEST(Resize, D6_WhoNoLongerNeedsTheRoomLeavesItAsItWas) {
  Script s = pool_of_eight();
  run(s, ranged("wide", 8, 2));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::training("late", 4)));
  ASSERT_EQ(s.task("wide").phase, Phase::yielding);
  ASSERT_TRUE(s.event(TaskCancelRequested{"late", "root"}));
  s.pass(seconds(1));
  EXPECT_EQ(s.task("wide").phase, Phase::running);
  EXPECT_EQ(s.task("wide").slots.size(), 8U);
  EXPECT_TRUE(s.state.plans.empty());
}

TEST(Resize, D6_ItGrowsWhereThereIsRoomAfterItsDwell) {
  Script s = pool_of_eight();
  run(s, Script::training("five", 5));
  run(s, ranged("some", 8, 2));
  s.exited("five", 0);
  s.work(minutes(20));
  EXPECT_EQ(s.task("some").slots.size(), 2U);
  EXPECT_EQ(s.task("some").phase, Phase::running);
  s.work(minutes(11));
  ASSERT_EQ(s.task("some").phase, Phase::yielding) << s.where("some");
  EXPECT_EQ(s.task("some").stop_reason, StopReason::resized);
  EXPECT_TRUE(index_is_current(s.state));
  s.checkpoint("some");
  s.exited("some", 75);
  EXPECT_EQ(s.where("some"), "starting n0:0,1,2,3,4,5,6,7");
  EXPECT_EQ(s.task("some").lost, Micros(0));
  s.started("some");
  s.work(hours(2));
  EXPECT_EQ(s.task("some").resizes, 1);
}

TEST(Resize, D6_ItDoesNotGrowWhileOthersWait) {
  Script s = pool_of_eight();
  run(s, Script::training("six", 6));
  run(s, ranged("some", 8, 2));
  s.exited("six", 0);
  run(s, Script::training("one", 1));
  s.work(minutes(10));
  ASSERT_TRUE(s.submit(Script::training("large", 8)));
  s.work(hours(1));
  EXPECT_EQ(s.task("some").slots.size(), 2U);
  EXPECT_EQ(s.task("some").resizes, 0);
}

TEST(Resize, D6_WithinTheLimitOfItsTeam) {
  Script s;
  s.spec.teams = {{"vision", "", 0, 4}};
  s.configure();
  s.node("n0", "d0", 8);
  TaskSpec task = ranged("some", 8, 1);
  task.team = "vision";
  run(s, task);
  EXPECT_EQ(s.task("some").slots.size(), 4U);
  s.work(hours(2));
  EXPECT_EQ(s.task("some").slots.size(), 4U);
  EXPECT_EQ(s.task("some").resizes, 0);
}

TEST(Resize, D6_WhyAndTheSpecificationSayIt) {
  Script s = pool_of_eight();
  run(s, Script::training("all", 8));
  ASSERT_TRUE(s.submit(ranged("some", 4, 2)));
  EXPECT_EQ(explain_wait(s.state, s.task("some")),
            "needs 4 whole devices (2 will do); 0 of 8 usable devices are wholly free");
  TaskSpec wrong = ranged("wrong", 2, 3);
  const auto refused = s.submit(wrong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context, "least_gpus");
}

}  // namespace
}  // namespace neap::resize_test
