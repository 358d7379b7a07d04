#include "core/rules/adoption.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap::adoption_test {
namespace {

using testing::Script;

// Eight devices: two of the guard, two of the buffer, four of the core.
Script pool_in(AdoptionStage stage) {
  Script s;
  s.spec.inference_guard_min = 2;
  s.spec.elastic_buffer = 2;
  s.spec.adoption.begin = stage;
  s.spec.adoption.least_starts = 1;
  s.spec.preempt.protect_min = Micros(0);
  s.configure();
  s.node("n0", "d0", 8);
  return s;
}

TaskSpec quick(const std::string& name, int gpus = 1) {
  TaskSpec task = Script::training(name, gpus);
  task.contract.restore = seconds(1);
  return task;
}

TaskSpec share(const std::string& name) {
  TaskSpec task = quick(name);
  task.request.share = MilliGpu(400);
  task.request.memory = MiB(8192);
  return task;
}

Result<void> change(Script& s, AdoptionStage to, bool forced = false, const std::string& why = {}) {
  return s.event(AdoptionChangeRequested{to, "ops", why, forced});
}

void run(Script& s, const std::string& name) {
  s.started(name);
  s.checkpoint(name);
}

TEST(Adoption, F8_InThePhysicalStageEachKindOfWorkHasItsOwnDevices) {
  Script s = pool_in(AdoptionStage::physical);
  ASSERT_TRUE(s.submit(Script::service("chat", 5, 5)));
  EXPECT_EQ(s.task("chat.3").phase, Phase::starting);
  EXPECT_EQ(s.where("chat.4"), "waiting adoption") << "the core is for training";
  ASSERT_TRUE(s.submit(quick("gang", 4)));
  EXPECT_EQ(s.where("gang"), "starting n0:0,1,2,3");
  ASSERT_TRUE(s.submit(quick("more")));
  EXPECT_EQ(s.task("more").phase, Phase::waiting);
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Adoption, F8_InThePhysicalStageNoTwoTasksShareADevice) {
  Script s = pool_in(AdoptionStage::physical);
  ASSERT_TRUE(s.submit(share("a")));
  ASSERT_TRUE(s.submit(share("b")));
  EXPECT_NE(s.task("a").slots.front().device, s.task("b").slots.front().device);
  Script shared = pool_in(AdoptionStage::memory);
  ASSERT_TRUE(shared.submit(share("a")));
  ASSERT_TRUE(shared.submit(share("b")));
  EXPECT_EQ(shared.task("a").slots.front().device, shared.task("b").slots.front().device);
}

TEST(Adoption, F8_TheFileOfAPoolThatRunsChangesNoStage) {
  Script s = pool_in(AdoptionStage::physical);
  s.spec.adoption.begin = AdoptionStage::time;
  s.configure();
  EXPECT_EQ(s.state.adoption.stage, AdoptionStage::physical);
}

TEST(Adoption, F8_TheBufferIsLentInTheLastStageAlone) {
  for (const auto stage : {AdoptionStage::physical, AdoptionStage::memory, AdoptionStage::time}) {
    Script s = pool_in(stage);
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(s.submit(quick("t" + std::to_string(i))));
    const bool lent = s.task("t5").phase == Phase::starting;
    EXPECT_EQ(lent, stage == AdoptionStage::time) << name_of(stage);
    if (lent) continue;
    EXPECT_EQ(s.where("t5"), "waiting adoption") << name_of(stage);
    EXPECT_NE(explain_wait(s.state, s.task("t5")).find("stage " + std::string(name_of(stage))),
              std::string::npos);
  }
}

TEST(Adoption, F8_InferenceTakesNothingBackBeforeTheLastStage) {
  for (const auto stage : {AdoptionStage::memory, AdoptionStage::time}) {
    Script s = pool_in(stage);
    ASSERT_TRUE(s.submit(quick("gang", 4)));
    run(s, "gang");
    s.pass(minutes(20));
    ASSERT_TRUE(s.submit(Script::service("chat", 5, 5)));
    const Phase phase = s.task("gang").phase;
    EXPECT_EQ(phase, stage == AdoptionStage::time ? Phase::yielding : Phase::running)
        << name_of(stage);
  }
}

TEST(Adoption, F8_TheWayBackLetsTasksEndAtTheirBoundariesAndKillsNobody) {
  Script s = pool_in(AdoptionStage::time);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(s.submit(quick("t" + std::to_string(i))));
    run(s, "t" + std::to_string(i));
  }
  ASSERT_TRUE(s.submit(share("small")));
  s.pass(minutes(1));
  ASSERT_TRUE(change(s, AdoptionStage::physical, false, "drops of packets"));
  int yielding = 0;
  s.state.tasks.for_each([&](const TaskState& t) {
    EXPECT_NE(t.phase, Phase::stopping) << t.spec.name;
    const bool on_buffer =
        !t.slots.empty() && s.state.device(t.slots.front().device).role == Role::buffer;
    EXPECT_EQ(t.phase == Phase::yielding, on_buffer) << t.spec.name;
    if (t.phase != Phase::yielding) return;
    ++yielding;
    EXPECT_EQ(t.stop_reason, StopReason::adoption);
  });
  EXPECT_EQ(yielding, 2);
  s.exited("t4", 75);
  EXPECT_EQ(s.task("t4").phase, Phase::waiting);
  EXPECT_EQ(s.task("t4").lost, Micros(0)) << "it had saved its work";
  EXPECT_EQ(s.state.adoption.seen.kept, 1);
  ASSERT_EQ(s.state.adoption.changes.size(), 1U);
  EXPECT_EQ(s.state.adoption.changes.front().why, "drops of packets");
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Adoption, F8_AnAdvanceIsRefusedUntilItsCheckIsPassed) {
  Script s = pool_in(AdoptionStage::physical);
  const auto early = change(s, AdoptionStage::memory);
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().message.find("stabilised: 0 h 0 min, at least 168 h 0 min"),
            std::string::npos)
      << early.error().message;
  EXPECT_NE(early.error().message.find("used: 0 starts"), std::string::npos);
  ASSERT_TRUE(s.submit(quick("a")));
  run(s, "a");
  s.work(hours(168));
  EXPECT_EQ(missing_gates(s.state, s.now), "");
  ASSERT_FALSE(change(s, AdoptionStage::time)) << "one step at a time";
  ASSERT_TRUE(change(s, AdoptionStage::memory));
  EXPECT_EQ(s.state.adoption.stage, AdoptionStage::memory);
  EXPECT_EQ(s.state.adoption.seen.starts, 0) << "measured anew";
}

TEST(Adoption, F8_AFaultOrABreachHoldsTheAdvanceAndForceIsRecorded) {
  Script s = pool_in(AdoptionStage::physical);
  ASSERT_TRUE(s.submit(quick("a")));
  run(s, "a");
  s.work(hours(169));
  ASSERT_TRUE(s.event(DeviceHealthChanged{"n0", 7, DeviceHealth::failed, "XID 79"}));
  const auto refused = change(s, AdoptionStage::memory);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("faults: 1, at most 0"), std::string::npos);
  ASSERT_FALSE(change(s, AdoptionStage::memory, true)) << "force needs a reason";
  ASSERT_TRUE(change(s, AdoptionStage::memory, true, "the device was replaced"));
  const AdoptionChange& kept = s.state.adoption.changes.back();
  EXPECT_TRUE(kept.forced);
  EXPECT_EQ(kept.by, "ops");
  EXPECT_EQ(kept.missing, "faults: 1, at most 0");
}

TEST(Adoption, F8_TheLastStageNeedsADrill) {
  Script s = pool_in(AdoptionStage::memory);
  ASSERT_TRUE(s.submit(quick("a")));
  run(s, "a");
  s.work(hours(169));
  EXPECT_EQ(missing_gates(s.state, s.now), "drill: no drill has been run in this stage");
  s.state.last_drill = {"burst", false, s.now, "one task was stopped"};
  EXPECT_EQ(missing_gates(s.state, s.now), "drill: burst failed: one task was stopped");
  s.state.last_drill = {"burst", true, s.now, ""};
  EXPECT_EQ(missing_gates(s.state, s.now), "");
  ASSERT_TRUE(change(s, AdoptionStage::time));
}

TEST(Adoption, F8_ShortageAndMemoryAreCounted) {
  Script s = pool_in(AdoptionStage::memory);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  s.started("chat.0");
  s.healthy("chat.0");
  for (int i = 0; i < 10; ++i) {
    s.pass(seconds(10));
    ASSERT_TRUE(s.event(ServiceMeasured{"chat", i < 5 ? 30 : 5}));
  }
  EXPECT_EQ(s.state.adoption.seen.measured, seconds(90));
  EXPECT_EQ(s.state.adoption.seen.shortage, seconds(50));
  const AllocationId allocation = s.task("chat.0").allocation;
  ASSERT_TRUE(s.submit(share("t")));
  ASSERT_TRUE(s.event(MemoryObserved{s.task("t").allocation, MiB(8000)}));
  EXPECT_EQ(s.state.adoption.seen.memory_breaches, 0);
  ASSERT_TRUE(s.event(MemoryObserved{s.task("t").allocation, MiB(9000)}));
  ASSERT_TRUE(s.event(MemoryObserved{s.task("t").allocation, MiB(9500)}));
  EXPECT_EQ(s.state.adoption.seen.memory_breaches, 1) << "once an allocation";
  ASSERT_FALSE(s.event(MemoryObserved{AllocationId(allocation.value + 100), MiB(1)}));
}

}  // namespace
}  // namespace neap::adoption_test
