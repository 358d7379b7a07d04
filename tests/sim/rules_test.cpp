// Rules of the specification on the simulator: admission (A4), pause (G4), overdue checkpoints
// (D12), and the complaints that users of other schedulers have, turned into tests.
#include <gtest/gtest.h>

#include "core/rules/explain.h"
#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

// ---- A4 --------------------------------------------------------------------------------------

struct Condition {
  const char* name;
  std::function<void(TaskSpec&)> spoil;
  const char* named;
};

void PrintTo(const Condition& condition, std::ostream* out) { *out << condition.name; }

class Admission : public ::testing::TestWithParam<Condition> {};

TEST_P(Admission, A4_TheFailedConditionIsNamed) {
  Stage stage(pool_with(0, 0), nodes_of(2, 2));
  TaskSpec task = task_of({.name = "job"});
  GetParam().spoil(task);
  stage->submit(task);
  stage.run_for(seconds(10));
  EXPECT_EQ(stage.phase("job"), Phase::refused);
  const std::string& detail = stage.task("job").detail;
  EXPECT_TRUE(detail.starts_with(std::string(GetParam().named) + ": ")) << detail;
}

TEST_P(Admission, A4_ItGoesToTheDedicatedPartitionWhereThereIsOne) {
  std::vector<NodeSpec> nodes = nodes_of(4, 2);
  for (DeviceSpec& device : nodes[1].devices) device.dedicated = true;
  Stage stage(pool_with(0, 0), nodes);
  TaskSpec task = task_of({.name = "job"});
  GetParam().spoil(task);
  stage->submit(task);
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("job"); }));
  EXPECT_EQ(stage.roles_of("job"), std::vector<std::string>{"dedicated"});
}

INSTANTIATE_TEST_SUITE_P(
    Rule, Admission,
    ::testing::Values(
        Condition{"Interruptible", [](TaskSpec& spec) { spec.interruptible = false; },
                  "interruptible"},
        Condition{"Contract", [](TaskSpec& spec) { spec.contract = {}; }, "interruptible"},
        Condition{"Predictable", [](TaskSpec& spec) { spec.predictable = false; }, "predictable"},
        Condition{"Delay", [](TaskSpec& spec) { spec.delay_tolerance = seconds(30); },
                  "delay_tolerance"}),
    [](const auto& param) { return std::string(param.param.name); });

// ---- D12 -------------------------------------------------------------------------------------

TEST(Rule, D12_ThreeMissedCheckpointsRevokeAdmission) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  Job lazy{.name = "lazy", .length = hours(20)};
  lazy.behaviour.fault = simulated::Fault::skips_checkpoints;
  stage->submit(task_of(lazy));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("lazy"); }));
  for (int missed = 1; missed <= 3; ++missed) {
    ASSERT_TRUE(stage.wait_for([&] { return stage.task("lazy").missed == missed; }));
    EXPECT_TRUE(stage.runs("lazy")) << "it is asked " << missed << " times";
  }
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("lazy") == Phase::failed; }));
  EXPECT_TRUE(stage.task("lazy").detail.starts_with("admission revoked"))
      << stage.task("lazy").detail;
}

TEST(Rule, D12_ACheckpointThatComesWhenAskedForgivesTheMissedOnes) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  Job slow{.name = "slow", .length = hours(6)};
  slow.behaviour.interval = minutes(25);  // it promises 10
  TaskSpec task = task_of(slow);
  task.contract.interval = minutes(10);
  stage->submit(task);
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("slow") == Phase::finished; }, hours(9)));
  EXPECT_EQ(stage.task("slow").restarts, 0);
}

// ---- G4 --------------------------------------------------------------------------------------

TEST(Rule, G4_PauseFreezesPreemptionAndScalingAndKeepsTasksRunning) {
  Stage stage(pool_with(1, 0), nodes_of(3, 3));
  stage->submit(task_of({.name = "job-a", .length = hours(30)}));
  stage->submit(task_of({.name = "job-b", .length = hours(30)}));
  std::int64_t in_use = 5;
  stage->submit(service_of("chat", 1, 3), [&](Time) { return std::optional(in_use); });
  ASSERT_TRUE(
      stage.wait_for([&] { return stage.ready("chat") == 1 && stage.holding("job") == 2; }));
  stage.run_for(hours(2));
  stage->ask(PauseRequested{"operator", "the first incident"});
  stage.run_for(seconds(1));
  EXPECT_TRUE(stage.state().pause.active);
  const AllocationId a = stage.task("job-a").allocation;
  in_use = 30;
  stage.run_for(hours(3));
  EXPECT_EQ(stage.replicas("chat"), 1) << "no scaling";
  EXPECT_TRUE(stage.runs("job-a"));
  EXPECT_EQ(stage.task("job-a").allocation, a) << "it was not touched";
  // A second service is below its smallest number: its replica is asked for, and who runs stays.
  stage->submit(service_of("voice", 1, 1), constant(1));
  stage.run_for(hours(1));
  EXPECT_EQ(stage.phase("voice.0"), Phase::waiting);
  EXPECT_EQ(stage.reason("voice.0"), "paused");
  EXPECT_EQ(stage.holding("job"), 2);
  stage->ask(ResumeRequested{"operator"});
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("voice") == 1; }));
}

TEST(Rule, G4_PauseWithdrawsYieldsThatWereAsked) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  stage->submit(task_of({.name = "job", .length = hours(30)}));
  stage.run_for(hours(2));
  stage->submit(service_of("chat", 1, 1), constant(1));
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("job") == Phase::yielding; }));
  stage->ask(PauseRequested{"operator", "the first incident"});
  stage.run_for(hours(1));
  EXPECT_TRUE(stage.runs("job"));
  EXPECT_EQ(stage.task("job").preemptions, 0);
  EXPECT_EQ(stage.ready("chat"), 0);
}

// ---- complaints about others -----------------------------------------------------------------

TEST(Peers, TwoGangsThatCouldEachStartAloneDoNotDeadlock) {
  Stage stage(pool_with(0, 0), nodes_of(8, 4));
  for (const char* name : {"gang-a", "gang-b"}) {
    stage->submit(task_of({.name = name, .length = hours(2), .devices = 6}));
  }
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("gang-a"); }));
  EXPECT_EQ(stage.task("gang-a").slots.size(), 6U);
  EXPECT_EQ(stage.phase("gang-b"), Phase::waiting);
  EXPECT_TRUE(stage.task("gang-b").slots.empty()) << "it holds no part while it waits";
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("gang-b") == Phase::finished; }, hours(6)));
  EXPECT_EQ(stage.phase("gang-a"), Phase::finished);
}

TEST(Peers, TwoGangsBehindOnePreemptionDoNotDeadlock) {
  Stage stage(pool_with(0, 0), nodes_of(8, 4));
  for (int i = 0; i < 8; ++i) {
    stage->submit(task_of({.name = "small" + std::to_string(i), .length = hours(40)}));
  }
  stage.run_for(hours(3));
  for (const char* name : {"gang-a", "gang-b"}) {
    stage->submit(
        task_of({.name = name, .length = hours(2), .devices = 6, .tier = "train_deadline_near"}));
  }
  ASSERT_TRUE(stage.wait_for(
      [&] {
        return stage.phase("gang-a") == Phase::finished && stage.phase("gang-b") == Phase::finished;
      },
      hours(12)));
}

TEST(Peers, NobodyIsEvictedWhereThePreemptorWouldNotFit) {
  // Two small cards run training, the large one serves. In total three cards have room enough for
  // 60 GiB; no single one can be made to have it.
  std::vector<NodeSpec> nodes = nodes_of(3, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    nodes[0].devices[i].memory = MiB(40'960);
    nodes[0].devices[i].model = "A100-40G";
  }
  Stage stage(pool_with(0, 0), nodes);
  ServiceSpec chat = service_of("chat", 1, 1);
  chat.request.models = {"A100-80G"};
  stage->submit(chat, constant(1));
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  stage->submit(task_of({.name = "job-a", .length = hours(30)}));
  stage->submit(task_of({.name = "job-b", .length = hours(30)}));
  stage.run_for(hours(2));
  ASSERT_EQ(stage.holding("job"), 2);
  ServiceSpec large = service_of("large", 1, 1);
  large.request.memory = MiB(61'440);
  stage->submit(large, constant(1));
  stage.run_for(hours(2));
  EXPECT_EQ(stage.phase("large.0"), Phase::waiting);
  EXPECT_EQ(stage.holding("job"), 2);
  EXPECT_EQ(stage.task("job-a").preemptions + stage.task("job-b").preemptions, 0);
}

TEST(Peers, OneVictimOnOneDeviceRatherThanTotalsOverSeveral) {
  // Half of each device is free: 1000 milli in total. A replica of 800 needs one of the two.
  Stage stage(pool_with(0, 0), nodes_of(2, 2));
  for (const char* name : {"a", "b"}) {
    TaskSpec task = share_of(task_of({.name = std::string("half-") + name, .length = hours(40)}),
                             MiB(41'000), MilliGpu(500));
    stage->submit(task);
  }
  stage.run_for(hours(2));
  ASSERT_EQ(stage.holding("half"), 2);
  ServiceSpec chat = service_of("chat", 1, 1);
  chat.request.share = MilliGpu(800);
  chat.request.memory = MiB(41'000);
  stage->submit(chat, constant(1));
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  EXPECT_EQ(stage.holding("half"), 1);
}

TEST(Peers, AEvictsBEvictsAStops) {
  PoolSpec pool = pool_with(0, 0);
  Stage stage(pool, nodes_of(2, 2));
  stage->submit(task_of({.name = "normal-a", .length = hours(300)}));
  stage->submit(task_of({.name = "normal-b", .length = hours(300)}));
  // A load that rises and falls every quarter of an hour asks for the same device again and again.
  stage->submit(service_of("chat", 1, 2), [](Time t) {
    return std::optional<std::int64_t>(t.us / minutes(15).value % 2 == 0 ? 20 : 1);
  });
  stage->submit(task_of({.name = "near", .length = hours(100), .tier = "train_deadline_near"}));
  stage.run_for(hours(24) * 3);
  std::int32_t preempted = 0;
  for (const char* name : {"normal-a", "normal-b", "near"}) {
    const TaskState& task = stage.task(name);
    preempted += task.preemptions;
    EXPECT_LE(task.preemptions, pool.preempt.budget_per_day * 3) << name;
  }
  EXPECT_GT(preempted, 0) << "nothing was tested";
}

TEST(Peers, RestartAndDeletedTaskKeepTheBooksEqualToTheDevices) {
  Site::Options options;
  options.seed = 7;
  options.network = {.least = milliseconds(1), .most = milliseconds(300), .doubled = Ppm(200'000)};
  Stage stage(pool_with(1, 1), nodes_of(6, 3), options);
  for (int i = 0; i < 8; ++i) {
    stage->submit(task_of({.name = "job" + std::to_string(i), .length = hours(9)}));
  }
  stage->submit(service_of("chat", 1, 2), constant(5));
  stage.run_for(minutes(30));
  for (int round = 0; round < 8; ++round) {
    stage->ask(TaskCancelRequested{"job" + std::to_string(round), "its owner"});
    stage->run_for(milliseconds(round * 40));
    stage->daemon().crash();
    stage.run_for(minutes(5));
    ASSERT_TRUE(stage->daemon().is_up());
    EXPECT_EQ(stage.used_milli(), stage.occupied_milli()) << "round " << round;
  }
  stage->ask(ServiceRemoveRequested{"chat", "its owner"});
  stage.run_for(minutes(10));
  EXPECT_EQ(stage.holding(""), 0);
  EXPECT_EQ(stage.used_milli(), 0);
  EXPECT_EQ(stage.occupied_milli(), 0);
}

TEST(Peers, ATaskWithNoProcessHoldsNoQuota) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  Job broken{.name = "broken", .length = hours(2)};
  broken.behaviour.fault = simulated::Fault::crashes;
  broken.behaviour.fault_at = 30;  // after its first checkpoint
  stage->submit(task_of(broken));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("broken"); }));
  stage->submit(task_of({.name = "next", .length = minutes(30)}));
  ASSERT_TRUE(stage.wait_for([&] { return !holds_devices(stage.phase("broken")); }));
  EXPECT_TRUE(stage.task("broken").slots.empty());
  // While it waits out its pause, another has the device.
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("next"); }, minutes(1)));
}

TEST(Peers, MissingMetricsAreUnknownNeverZero) {
  Stage stage(pool_with(3, 0), nodes_of(3, 3));
  std::optional<std::int64_t> in_use = 19;
  stage->submit(service_of("chat", 1, 3), [&](Time) { return in_use; });
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 2; }));
  in_use = 10;
  stage.run_for(minutes(10));
  in_use.reset();
  stage.run_for(hours(2));
  EXPECT_EQ(stage.replicas("chat"), 2);
  in_use = 0;
  ASSERT_TRUE(stage.wait_for([&] { return stage.replicas("chat") == 1; })) << "zero is not unknown";
}

TEST(Peers, CapacityIsFreeOnlyWhenTerminationIsConfirmed) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  stage->submit(task_of({.name = "first", .length = hours(30)}));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("first"); }));
  stage->submit(task_of({.name = "second", .length = hours(1)}));
  stage->cut_node("n0");
  stage.run_for(minutes(1));
  stage->ask(TaskCancelRequested{"first", "its owner"});
  stage.run_for(hours(2));
  // SIGTERM and SIGKILL were sent long ago; nobody has said that it is gone.
  EXPECT_EQ(stage.phase("first"), Phase::stopping);
  EXPECT_EQ(stage.phase("second"), Phase::waiting);
  stage->reconnect_node("n0");
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("second"); }));
  EXPECT_EQ(stage.phase("first"), Phase::cancelled);
}

TEST(Peers, ALostNodeOfAGangFreesNothingElsewhereBeforeItsPartsHaveEnded) {
  Stage stage(pool_with(0, 0), nodes_of(8, 4));
  stage->submit(task_of({.name = "gang", .length = hours(30), .devices = 8}));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("gang"); }));
  stage->submit(task_of({.name = "next", .length = hours(1), .devices = 4}));
  stage->lose_node("n1");
  ASSERT_TRUE(stage.wait_for([&] { return !stage.state().nodes[1].up; }));
  EXPECT_EQ(stage.phase("gang"), Phase::stopping);
  EXPECT_EQ(stage.phase("next"), Phase::waiting);
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("next"); }));
  EXPECT_EQ(stage.phase("gang"), Phase::waiting);
}

TEST(Peers, EveryPendingTaskHasACurrentReason) {
  Stage stage(pool_with(2, 1), nodes_of(6, 3));
  stage->submit(task_of({.name = "runs0", .length = hours(30)}));
  stage->submit(task_of({.name = "runs1", .length = hours(30)}));
  stage->submit(task_of({.name = "runs2", .length = hours(30)}));
  stage->submit(task_of({.name = "runs3", .length = hours(30)}));
  stage.run_for(minutes(1));
  ASSERT_EQ(stage.holding("runs"), 4);
  Job rare{.name = "rare-boundaries", .length = hours(30)};
  rare.behaviour.interval = hours(2);  // it could not leave the buffer in time
  stage->submit(task_of(rare));
  stage->submit(task_of({.name = "one-more", .length = hours(30)}));
  stage->submit(task_of({.name = "wide", .length = hours(30), .devices = 5}));
  stage->submit(share_of(task_of({.name = "share"}), MiB(1'024), MilliGpu(100)));
  stage.run_for(minutes(1));
  const auto explained = [&](const std::string& name) {
    EXPECT_EQ(stage.phase(name), Phase::waiting) << name;
    EXPECT_FALSE(explain_wait(stage.state(), stage.task(name)).empty()) << name;
    return stage.reason(name);
  };
  EXPECT_EQ(explained("one-more"), "guard");
  EXPECT_EQ(explained("rare-boundaries"), "guard");
  EXPECT_EQ(explained("share"), "guard");
  EXPECT_EQ(explained("wide"), "whole_devices");
  // The reason follows what happens: two devices less, and the guard is not what is missing.
  stage->lose_node("n1");
  stage.run_for(hours(1));
  for (const char* name : {"one-more", "rare-boundaries", "share", "wide"}) explained(name);
}

}  // namespace
}  // namespace neap::sim
