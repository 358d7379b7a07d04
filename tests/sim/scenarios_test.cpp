// The field scenarios of the specification and its rules, on the simulator. Each is named after
// its number, so that `ctest -R S3_` finds it.
#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

// ---- S1 --------------------------------------------------------------------------------------

PoolSpec field_pool() {
  PoolSpec pool = pool_with(16, 4);
  pool.total_gpus = 64;
  return pool;
}

TEST(Scenario, S1_AGuardAboveTheFilesOwnTotalIsRefused) {
  PoolSpec pool = field_pool();
  EXPECT_TRUE(check_event(PoolState(), PoolConfigured{pool}).has_value());
  pool.inference_guard_min = 65;
  const Result<void> refused = check_event(PoolState(), PoolConfigured{pool});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(to_string(refused.error()).find("inference_guard_min"), std::string::npos);
}

TEST(Scenario, S1_WithFewerDevicesThanTheGuardNothingIsLent) {
  Stage stage(field_pool(), nodes_of(10, 5));
  EXPECT_TRUE(stage.has_condition("guard_unmet"));
  EXPECT_TRUE(stage.has_condition("devices_missing"));
  stage->submit(task_of({.name = "job"}));
  stage->submit(service_of("chat", 2, 2), constant(5));
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 2; }));
  stage.run_for(hours(2));
  EXPECT_EQ(stage.phase("job"), Phase::waiting);
  EXPECT_EQ(stage.reason("job"), "guard");
  EXPECT_NE(stage.state().conditions.at("guard_unmet").find("nothing is lent"), std::string::npos);
}

TEST(Scenario, S1_TheConditionEndsWhenTheDevicesAreThere) {
  Stage stage(field_pool(), nodes_of(64, 8));
  EXPECT_FALSE(stage.has_condition("guard_unmet"));
  stage->submit(task_of({.name = "job"}));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("job"); }));
  for (const char* node : {"n1", "n2", "n3", "n4", "n5", "n6", "n7"}) stage->lose_node(node);
  ASSERT_TRUE(stage.wait_for([&] { return stage.has_condition("guard_unmet"); }));
  for (const char* node : {"n1", "n2"}) stage->return_node(node);
  ASSERT_TRUE(stage.wait_for([&] { return !stage.has_condition("guard_unmet"); }));
}

// ---- S2 --------------------------------------------------------------------------------------

TEST(Scenario, S2_ATaskAndAReplicaShareADeviceAndASecondPairIsShortOfCompute) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  ServiceSpec chat = service_of("chat", 1, 1);
  chat.request.memory = MiB(8 * 1024);
  chat.request.share = MilliGpu(300);
  const auto job = [&](const char* name) {
    return share_of(task_of({.name = name}), MiB(16 * 1024), MilliGpu(600));
  };
  stage->submit(job("job"));
  stage->submit(chat, constant(5));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("job") && stage.ready("chat") == 1; }));
  EXPECT_EQ(stage.task("job").slots[0].device, stage.task("chat.0").slots[0].device);
  ServiceSpec second = chat;
  second.name = "chat-b";
  stage->submit(job("job-b"));
  stage->submit(second, constant(5));
  stage.run_for(minutes(20));
  EXPECT_EQ(stage.reason("job-b"), "compute");
  EXPECT_EQ(stage.reason("chat-b.0"), "compute");
  // Memory would allow it: 48 of 80 GiB.
  EXPECT_EQ(stage.state().devices[0].used_memory, MiB(24 * 1024));
}

// ---- S3 --------------------------------------------------------------------------------------

TEST(Scenario, S3_ALongJobYieldsAtABoundaryAndLosesNothing) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  const TaskSpec job = task_of({.name = "job", .length = hours(20)});
  stage->submit(job);
  stage.run_for(hours(7) + minutes(3));
  stage->submit(service_of("chat", 1, 1), constant(5));
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  EXPECT_EQ(stage.phase("job"), Phase::waiting);
  EXPECT_EQ(stage.task("job").preemptions, 1);
  EXPECT_EQ(stage.task("job").lost, Micros(0));
  stage.run_for(hours(1));
  stage->ask(ServiceRemoveRequested{"chat", "operator"});
  ASSERT_TRUE(stage.wait_for([&] { return stage.phase("job") == Phase::finished; }, hours(30)));
  // Every step was executed once: nothing was lost, nothing replayed.
  EXPECT_EQ(stage.executed("job"), hours(20).value / seconds(30).value);
  EXPECT_EQ(stage.task("job").lost, Micros(0));
}

TEST(Scenario, S3_AKilledJobLosesAtMostItsInterval) {
  for (const Micros into : {minutes(12), minutes(20), minutes(47), minutes(121)}) {
    Stage stage(pool_with(0, 0), nodes_of(1, 1));
    stage->submit(task_of({.name = "job", .length = hours(20)}));
    ASSERT_TRUE(stage.wait_for([&] { return stage.runs("job"); }));
    stage.run_for(into);
    stage->backend().crash_task(stage.task("job").allocation, "kill -9");
    ASSERT_TRUE(stage.wait_for([&] { return stage.task("job").restarts == 1; }));
    const Micros lost = stage.task("job").lost;
    EXPECT_GT(lost, Micros(0));
    EXPECT_LE(lost, minutes(10) + seconds(30) + seconds(20)) << "an interval, a step and the save";
    ASSERT_TRUE(stage.wait_for([&] { return stage.phase("job") == Phase::finished; }, hours(30)));
  }
}

TEST(Scenario, S3_WithoutTheContractItIsNotAdmitted) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  TaskSpec job = task_of({.name = "job", .length = hours(20)});
  job.contract = ContractSpec{};
  stage->submit(job);
  stage.run_for(seconds(10));
  EXPECT_EQ(stage.phase("job"), Phase::refused);
  EXPECT_TRUE(stage.task("job").detail.starts_with("interruptible: ")) << stage.task("job").detail;
}

// ---- S4 --------------------------------------------------------------------------------------

TEST(Scenario, S4_DayAndNightAndASuddenBurst) {
  Stage stage(pool_with(3, 2), nodes_of(12, 4));
  std::int64_t in_use = 90;  // of 9 replicas at 10 each: the peak of the day
  stage->submit(service_of("chat", 1, 9), [&](Time) { return std::optional(in_use); });
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 9; }, hours(3)));
  for (int i = 0; i < 16; ++i) {
    // Each can leave as soon as any other, so that the order is a matter of choice alone.
    TaskSpec job = task_of({.name = "job" + std::to_string(i), .length = hours(20)});
    job.contract.on_demand = true;
    stage->submit(job);
  }
  stage.run_for(minutes(5));
  // Day: what the peak leaves is lent, but never the guard; who waits is told why.
  EXPECT_EQ(stage.holding("job"), 3);
  for (int i = 3; i < 16; ++i) {
    EXPECT_NE(stage.reason("job" + std::to_string(i)), "none");
  }
  in_use = 1;
  ASSERT_TRUE(stage.wait_for([&] { return stage.replicas("chat") == 1; }, hours(3)));
  ASSERT_TRUE(stage.wait_for([&] { return stage.holding("job") == 9; }))
      << "night: training holds all but the guard";
  EXPECT_EQ(stage.roles_of("job11").size() + stage.roles_of("job0").size(), 1U);
  stage.run_for(hours(1));
  in_use = 90;
  const Time burst = stage->now();
  std::vector<std::string> served_by;
  std::int64_t yielded = 0;
  std::map<std::string, bool> seen;
  const bool reached = stage.wait_for(
      [&] {
        const ServiceState& chat = *stage->service("chat");
        for (const TaskId id : chat.replicas) {
          const TaskState& replica = stage.state().tasks.at(id);
          if (!holds_devices(replica.phase) || seen[replica.spec.name]) continue;
          seen[replica.spec.name] = true;
          served_by.push_back(stage.roles_of(replica.spec.name).at(0));
        }
        yielded = 9 - stage.holding("job");
        return stage.ready("chat") == 9;
      },
      hours(3));
  ASSERT_TRUE(reached);
  // From the guard, then the buffer, then from training at its boundaries.
  const std::vector<std::string> expected{"guard", "guard", "guard", "buffer", "buffer",
                                          "core",  "core",  "core",  "core"};
  EXPECT_EQ(served_by, expected);
  EXPECT_EQ(yielded, 6);
  EXPECT_LT(stage->now() - burst, hours(2));
  stage.state().tasks.for_each(
      [&](const TaskState& task) { EXPECT_EQ(task.lost, Micros(0)) << task.spec.name; });
}

// ---- S7 --------------------------------------------------------------------------------------

TEST(Scenario, S7_ACardThatSomebodyElseFillsIsLeftOutAndComesBack) {
  Stage stage(pool_with(0, 0), nodes_of(1, 1));
  stage->set_foreign_memory("n0", 0, MiB(81'920 * 71 / 100));
  ASSERT_TRUE(stage.wait_for([&] { return stage.state().devices[0].excluded; }));
  stage->submit(share_of(task_of({.name = "small"}), MiB(1'024), MilliGpu(100)));
  stage.run_for(minutes(1));
  EXPECT_EQ(stage.phase("small"), Phase::waiting);
  // Between the two thresholds it stays out, and below the lower one it must stay low for 5 min.
  stage->set_foreign_memory("n0", 0, MiB(81'920 * 65 / 100));
  stage.run_for(minutes(20));
  EXPECT_TRUE(stage.state().devices[0].excluded);
  stage->set_foreign_memory("n0", 0, MiB(81'920 * 50 / 100));
  stage.run_for(minutes(4));
  stage->set_foreign_memory("n0", 0, MiB(81'920 * 61 / 100));
  stage.run_for(seconds(10));
  stage->set_foreign_memory("n0", 0, MiB(81'920 * 10 / 100));
  stage.run_for(minutes(4));
  EXPECT_TRUE(stage.state().devices[0].excluded);
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("small"); }, minutes(2)));
}

// ---- S12 -------------------------------------------------------------------------------------

TEST(Scenario, S12_AnotherBaselineIsRefusedAndNamed) {
  PoolSpec pool = pool_with(0, 0);
  pool.baseline = "torch-2.3-cuda-12.2";
  Stage stage(pool, nodes_of(2, 2));
  TaskSpec same = task_of({.name = "same"});
  same.baseline = pool.baseline;
  TaskSpec any = task_of({.name = "any"});
  TaskSpec other = task_of({.name = "other"});
  other.baseline = "torch-1.13-cuda-11.8";
  for (const TaskSpec& task : {same, any, other}) stage->submit(task);
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("same") && stage.runs("any"); }));
  EXPECT_EQ(stage.phase("other"), Phase::refused);
  const std::string& detail = stage.task("other").detail;
  EXPECT_TRUE(detail.starts_with("baseline: ")) << detail;
  EXPECT_NE(detail.find("torch-1.13-cuda-11.8"), std::string::npos) << detail;
}

// ---- S13 -------------------------------------------------------------------------------------

TEST(Scenario, S13_UpAbove70PercentFor3MinutesDownBelow20For5) {
  Stage stage(pool_with(4, 0), nodes_of(4, 4));
  std::int64_t in_use = 5;
  stage->submit(service_of("chat", 1, 3), [&](Time) { return std::optional(in_use); });
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  stage.run_for(minutes(30));
  EXPECT_EQ(stage.replicas("chat"), 1) << "50 % changes nothing";
  in_use = 8;
  const Time up = stage->now();
  ASSERT_TRUE(stage.wait_for([&] { return stage.replicas("chat") == 2; }));
  EXPECT_GE(stage->now() - up, minutes(3));
  EXPECT_LE(stage->now() - up, minutes(5));
  stage.run_for(minutes(30));
  EXPECT_EQ(stage.replicas("chat"), 2) << "8 of 20 is 40 %";
  in_use = 3;
  const Time down = stage->now();
  ASSERT_TRUE(stage.wait_for([&] { return stage.replicas("chat") == 1; }));
  EXPECT_GE(stage->now() - down, minutes(5));
  EXPECT_LE(stage->now() - down, minutes(7));
  in_use = 0;
  stage.run_for(minutes(30));
  EXPECT_EQ(stage.replicas("chat"), 1) << "never below its smallest number";
}

TEST(Scenario, S13_AGapInMetricsChangesNothing) {
  Stage stage(pool_with(4, 0), nodes_of(4, 4));
  std::optional<std::int64_t> in_use = 9;
  stage->submit(service_of("chat", 1, 3), [&](Time) { return in_use; });
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  // High for two minutes, a gap, high for two minutes: never three minutes in one piece.
  for (int i = 0; i < 6; ++i) {
    in_use = 9;
    stage.run_for(minutes(2));
    in_use.reset();
    stage.run_for(minutes(5));
    ASSERT_EQ(stage.replicas("chat"), 1) << "round " << i;
  }
  in_use = 9;
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 2; }));
  in_use.reset();
  stage.run_for(hours(3));
  EXPECT_EQ(stage.replicas("chat"), 2) << "no metrics are not no load";
}

// ---- S14 -------------------------------------------------------------------------------------

TEST(Scenario, S14_ALostFaultDomainLeavesTheOthersAndTheGuard) {
  Stage stage(pool_with(4, 0), nodes_of(12, 4, 3));
  stage->submit(service_of("chat", 2, 2), constant(8));
  for (int i = 0; i < 8; ++i) {
    stage->submit(task_of({.name = "job" + std::to_string(i), .length = hours(30)}));
  }
  ASSERT_TRUE(
      stage.wait_for([&] { return stage.holding("job") == 8 && stage.ready("chat") == 2; }));
  stage.run_for(hours(1));
  std::map<std::string, AllocationId> elsewhere;  // on nodes that stay
  stage.state().tasks.for_each([&](const TaskState& task) {
    const NodeId node = stage.state().device(task.slots.at(0).device).node;
    if (stage.state().node(node).name != "n2") elsewhere[task.spec.name] = task.allocation;
  });
  stage->lose_node("n2");
  ASSERT_TRUE(stage.wait_for([&] { return !stage.state().nodes[2].up; }));
  std::int64_t kept = 0;
  for (const auto& [name, allocation] : elsewhere) {
    kept += stage.task(name).allocation == allocation && holds_devices(stage.phase(name)) ? 1 : 0;
  }
  EXPECT_EQ(kept, static_cast<std::int64_t>(elsewhere.size())) << "the others go on";
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 2; }));
  ASSERT_TRUE(stage.wait_for([&] { return !stage.has_condition("guard_unmet"); }, hours(3)));
  std::int64_t guard = 0;
  for (const DeviceState& device : stage.state().devices) {
    if (device.role != Role::guard) continue;
    ++guard;
    EXPECT_TRUE(is_usable(stage.state(), device));
    for (const Tenant& tenant : device.tenants) {
      EXPECT_EQ(stage.state().tasks.at(tenant.task).purpose, Purpose::inference);
    }
  }
  EXPECT_EQ(guard, 4);
  EXPECT_EQ(stage.holding("job"), 4);
}

}  // namespace
}  // namespace neap::sim
