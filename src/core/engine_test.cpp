// What the engine decides, step by step. Requirement numbers are those of the specification.
#include "core/engine.h"

#include <gtest/gtest.h>

#include "core/apply_parts.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"
#include "core/what_if.h"

namespace neap {
namespace {

using testing::Script;

// A pool of one node, guard 1, buffer 1: devices 0, 1 are core, 2 the buffer, 3 the guard.
Script small_pool() {
  Script s;
  s.spec.inference_guard_min = 1;
  s.spec.elastic_buffer = 1;
  s.configure();
  s.node("n0", "d0", 4);
  return s;
}

TEST(Engine, D4_RolesAreSpreadFromTheLastDevice) {
  const Script s = small_pool();
  EXPECT_EQ(s.state.devices[0].role, Role::core);
  EXPECT_EQ(s.state.devices[1].role, Role::core);
  EXPECT_EQ(s.state.devices[2].role, Role::buffer);
  EXPECT_EQ(s.state.devices[3].role, Role::guard);
}

TEST(Engine, D4_TrainingTakesTheBufferAndNeverTheGuard) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(s.submit(Script::training(name)));
  EXPECT_EQ(s.where("a"), "starting n0:0");
  EXPECT_EQ(s.where("b"), "starting n0:1");
  EXPECT_EQ(s.where("c"), "starting n0:2");
  EXPECT_EQ(s.where("d"), "waiting guard");
}

TEST(Engine, D4_WorkThatCannotReleaseInTimeStaysOffTheBuffer) {
  Script s = small_pool();
  TaskSpec slow = Script::training("slow", 3);
  slow.contract.on_demand = false;
  slow.contract.interval = hours(1);
  ASSERT_TRUE(s.submit(slow));
  EXPECT_EQ(s.where("slow"), "waiting buffer");
}

TEST(Engine, D4_InferenceTakesGuardThenBufferThenCore) {
  Script s = small_pool();
  ASSERT_TRUE(s.submit(Script::service("chat", 3, 3)));
  EXPECT_EQ(s.where("chat.0"), "starting n0:3");
  EXPECT_EQ(s.where("chat.1"), "starting n0:2");
  EXPECT_EQ(s.where("chat.2"), "starting n0:0");
}

TEST(Engine, D2_AReplicaWaitsForABoundaryAndTakesItsPlace) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(1));
  for (const char* name : {"a", "b", "c"}) s.checkpoint(name);
  ASSERT_TRUE(s.submit(Script::service("chat", 2, 2)));
  EXPECT_EQ(s.where("chat.0"), "starting n0:3");
  EXPECT_EQ(s.where("chat.1"), "waiting yield_pending");
  const Plan& plan = s.state.plans.at(s.task("chat.1").id);
  ASSERT_EQ(plan.victims.size(), 1U);
  const TaskId victim = plan.victims[0].task;
  const std::string name = s.state.tasks.at(victim).spec.name;
  EXPECT_EQ(plan.victims[0].mode, ReleaseMode::boundary);
  EXPECT_EQ(s.task(name).phase, Phase::yielding);
  // Capacity is free only when the end is confirmed.
  s.pass(minutes(5));
  EXPECT_EQ(s.where("chat.1"), "waiting yield_pending");
  s.checkpoint(name);
  s.exited(name, 75);
  EXPECT_EQ(s.task("chat.1").phase, Phase::starting);
  EXPECT_EQ(s.task(name).phase, Phase::waiting);
  EXPECT_EQ(s.task(name).preemptions, 1);
  EXPECT_EQ(s.task(name).lost, Micros(0));
  // It goes on where it was as soon as there is room.
  ASSERT_TRUE(s.event(ServiceRemoveRequested{"chat", "root"}));
  s.exited("chat.1", 0);
  EXPECT_EQ(s.task(name).phase, Phase::starting);
  const auto& start = std::get<StartTask>(s.last.actions.back());
  EXPECT_EQ(start.restore_from, s.task(name).checkpoint_path);
}

TEST(Engine, D2_AYieldWhoseNeedHasGoneIsWithdrawn) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 2, 2)));
  ASSERT_EQ(s.where("chat.1"), "waiting yield_pending");
  ASSERT_TRUE(s.event(ServiceScaled{"chat", 1, 1, "root"}));
  EXPECT_TRUE(s.decided("YieldWithdrawn"));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(s.task(name).phase, Phase::running);
}

// SIGTERM cannot be taken back: who leaves because of it has done as it was asked.
TEST(Engine, D2_AWithdrawalThatComesTooLateIsNoFailureOfTheTask) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c"}) {
    TaskSpec task = Script::training(name);
    task.contract.sdk = false;
    task.contract.signals = true;
    ASSERT_TRUE(s.submit(task));
    s.started(name);
  }
  s.pass(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 2, 2)));
  const TaskId victim = s.state.plans.at(s.task("chat.1").id).victims.at(0).task;
  const std::string name = s.state.tasks.at(victim).spec.name;
  ASSERT_TRUE(s.event(PauseRequested{"root", "incident"}));
  ASSERT_TRUE(s.decided("YieldWithdrawn"));
  s.exited(name, 75);
  EXPECT_EQ(s.task(name).preemptions, 1);
  EXPECT_EQ(s.task(name).restarts, 0);
  EXPECT_EQ(s.task(name).lost, Micros(0));
}

TEST(Engine, D2_WhatIsBeingLeftServesASecondDemandToo) {
  Script s;
  s.spec.preempt.protect_min = minutes(1);
  s.configure();
  s.node("n0", "d0", 4);
  s.node("n1", "d1", 4);
  for (const char* name : {"big", "other"}) {
    ASSERT_TRUE(s.submit(Script::training(name, 4)));
    s.started(name);
  }
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 3, 3)));
  int yielding = 0;
  for (const char* name : {"big", "other"}) {
    yielding += s.task(name).phase == Phase::yielding ? 1 : 0;
  }
  EXPECT_EQ(yielding, 1) << "one job leaves four devices, three replicas need three";
  EXPECT_EQ(s.state.plans.size(), 3U);
  const std::string victim = s.task("big").phase == Phase::yielding ? "big" : "other";
  // One need goes: the others still want the job to leave.
  ASSERT_TRUE(s.event(ServiceScaled{"chat", 2, 2, "root"}));
  EXPECT_EQ(s.task(victim).phase, Phase::yielding);
  s.checkpoint(victim);
  s.exited(victim, 75);
  EXPECT_EQ(s.task("chat.0").phase, Phase::starting);
  EXPECT_EQ(s.task("chat.1").phase, Phase::starting);
  EXPECT_NE(s.task("chat.0").slots, s.task("chat.1").slots);
}

TEST(Engine, D2_APlanGivesUpOnATaskThatDoesNotEndInTime) {
  Script s;
  s.spec.preempt.protect_min = minutes(1);
  s.configure();
  s.node("n0", "d0", 1);
  TaskSpec nearly = Script::training("nearly");
  nearly.work = hours(1) + minutes(1);
  ASSERT_TRUE(s.submit(nearly));
  s.started("nearly");
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  const Plan& plan = s.state.plans.at(s.task("chat.0").id);
  ASSERT_EQ(plan.victims.at(0).mode, ReleaseMode::finish);  // W <= R: it is left to finish
  EXPECT_EQ(s.task("nearly").phase, Phase::running);
  s.work(minutes(20));  // and does not
  EXPECT_EQ(s.task("nearly").phase, Phase::yielding);
}

TEST(Engine, F6_SaysThatTheOthersMayNotYield) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  ASSERT_TRUE(s.submit(Script::training("young")));
  s.started("young");
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  EXPECT_EQ(s.where("chat.0"), "waiting whole_devices");
  const std::string why = explain_wait(s.state, s.task("chat.0"));
  EXPECT_NE(
      why.find("1 lighter task holds such devices, and none is asked: 1 in a protected window"),
      std::string::npos)
      << why;
  s.work(minutes(35));  // its protected window ends: the pool looks again by itself
  EXPECT_EQ(s.task("young").phase, Phase::yielding);
  EXPECT_EQ(s.where("chat.0"), "waiting yield_pending");
}

TEST(Engine, F6_NamesNobodyElsesWork) {
  Script s = small_pool();
  TaskSpec first = Script::training("a", 2);
  first.owner = {1000, 1000, "ada"};
  ASSERT_TRUE(s.submit(first));
  s.started("a");
  s.work(hours(1));
  TaskSpec urgent = Script::training("c", 2);
  urgent.tier = "train_deadline_near";
  urgent.owner = {2000, 2000, "bob"};
  ASSERT_TRUE(s.submit(urgent));
  const std::string why = explain_wait(s.state, s.task("c"));
  EXPECT_EQ(s.where("c"), "waiting yield_pending") << why;
  EXPECT_NE(why.find("waiting for another user's task"), std::string::npos) << why;
  const TaskId waiting = s.task("c").id;
  EXPECT_EQ(to_text(s.state, find_unblock(s.state, waiting, s.now)),
            "it starts when another user's task ends");
}

TEST(Engine, F6_SaysWhenThePoolIsTooSmallForIt) {
  Script s = small_pool();
  ASSERT_TRUE(s.submit(Script::training("a", 2)));
  s.started("a");
  TaskSpec whole = Script::training("whole", 4);
  whole.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(whole));
  const std::string why = explain_wait(s.state, s.task("whole"));
  EXPECT_NE(why.find("only 3 usable devices may ever serve it, those of the inference guard not "
                     "among them: it cannot start unless there are more"),
            std::string::npos)
      << why;
  EXPECT_EQ(why.find("is asked"), std::string::npos) << why;
}

// What may be asked is there, but not so much of it on one node.
TEST(Engine, F6_DoesNotSayThatNobodyMayYieldWhereSomeMay) {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  ASSERT_TRUE(s.submit(Script::training("old")));
  s.started("old");
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::training("young")));
  s.started("young");
  TaskSpec pair = Script::training("pair", 2);
  pair.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(pair));
  const std::string why = explain_wait(s.state, s.task("pair"));
  EXPECT_NE(
      why.find("2 lighter tasks hold such devices (1 in a protected window or out of budget), "
               "and what may be asked to yield is not enough in one place"),
      std::string::npos)
      << why;
  // Somebody runs that is lighter, but not where this one may be.
  TaskSpec other = pair;
  other.name = "other";
  other.request.models = {"H100-80G"};
  s.node("n1", "d1", 1, MiB(81920), "H100-80G");
  ASSERT_TRUE(s.event(TaskCancelRequested{"pair", "ann"}));
  other.request.count = 1;
  ASSERT_TRUE(s.submit(other));
  s.started("other");
  s.work(minutes(40));
  other.name = "next";
  ASSERT_TRUE(s.submit(other));
  const std::string next = explain_wait(s.state, s.task("next"));
  EXPECT_EQ(next.find("lighter tasks hold"), std::string::npos) << next;
}

TEST(Engine, TiersInUseStayAlsoForAServiceThatSleeps) {
  Script s = small_pool();
  ASSERT_TRUE(s.submit(Script::service("chat", 0, 1)));
  PoolSpec renamed = s.spec;
  renamed.tiers.front().name = "serving";
  const auto refused = s.event(PoolConfigured{renamed});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "tier infer_core is in use by chat and cannot move or go");
  ASSERT_TRUE(s.event(ServiceRemoveRequested{"chat", "root"}));
  EXPECT_TRUE(s.event(PoolConfigured{renamed}));
}

TEST(Engine, F6_AReplicaInBackoffSaysWhatHappened) {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  s.started("chat.0");
  s.exited("chat.0", 3);
  EXPECT_EQ(s.where("chat.0"), "failed");
  EXPECT_EQ(s.task("chat.0").detail, "exited with 3");
  EXPECT_EQ(s.where("chat.1"), "waiting backoff");
  EXPECT_NE(explain_wait(s.state, s.task("chat.1")).find("1 starts in a row ended unasked"),
            std::string::npos);
}

TEST(Engine, G4_PauseFreezesPreemptionAndScalingAndKeepsTasks) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 2, 2)));
  ASSERT_TRUE(s.event(PauseRequested{"root", "incident"}));
  EXPECT_TRUE(s.decided("YieldWithdrawn"));
  EXPECT_TRUE(s.state.plans.empty());
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(s.task(name).phase, Phase::running);
  ASSERT_TRUE(s.event(ResumeRequested{"root"}));
  EXPECT_EQ(s.where("chat.1"), "waiting yield_pending");
}

struct AdmissionCase {
  const char* name;
  void (*change)(TaskSpec&);
  const char* outcome;
};

void PrintTo(const AdmissionCase& admission, std::ostream* out) { *out << admission.name; }

class Admission_ : public ::testing::TestWithParam<AdmissionCase> {};

TEST_P(Admission_, A4_NamesTheConditionThatFailed) {
  Script s = small_pool();
  TaskSpec task = Script::training("t");
  GetParam().change(task);
  ASSERT_TRUE(s.submit(task));
  const TaskState& state = s.task("t");
  const std::string text = state.phase == Phase::refused ? state.detail : s.where("t");
  EXPECT_TRUE(text.starts_with(GetParam().outcome)) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Engine, Admission_,
    ::testing::Values(
        AdmissionCase{"good", [](TaskSpec&) {}, "starting"},
        AdmissionCase{"says_no", [](TaskSpec& t) { t.interruptible = false; }, "interruptible:"},
        AdmissionCase{"no_contract", [](TaskSpec& t) { t.contract = {}; }, "interruptible:"},
        AdmissionCase{"no_interval",
                      [](TaskSpec& t) {
                        t.contract.on_demand = false;
                        t.contract.interval = Micros(0);
                      },
                      "interruptible:"},
        AdmissionCase{"unpredictable", [](TaskSpec& t) { t.predictable = false; }, "predictable:"},
        AdmissionCase{"touchy", [](TaskSpec& t) { t.delay_tolerance = seconds(20); },
                      "delay_tolerance:"}),
    [](const auto& test) { return test.param.name; });

TEST(Engine, A5_S12_AnotherBaselineIsRefused) {
  Script s;
  s.spec.baseline = "cuda12.4";
  s.configure();
  s.node("n0", "d0", 1);
  TaskSpec task = Script::training("t");
  task.baseline = "cuda11.8";
  ASSERT_TRUE(s.submit(task));
  EXPECT_TRUE(s.task("t").detail.starts_with("baseline:")) << s.task("t").detail;
}

TEST(Engine, D12_ThreeMissedCheckpointsRevokeAdmission) {
  Script s = small_pool();
  ASSERT_TRUE(s.submit(Script::training("t")));
  s.started("t");
  s.pass(minutes(12));
  EXPECT_EQ(s.task("t").missed, 1);
  s.pass(minutes(24));
  EXPECT_EQ(s.task("t").missed, 3);
  s.pass(minutes(12));
  EXPECT_EQ(s.task("t").stop_reason, StopReason::admission_revoked);
  s.exited("t", 0, 15);
  EXPECT_EQ(s.task("t").phase, Phase::failed);
}

TEST(Engine, S2_PairsShareADeviceUntilComputeIsUsedUp) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  TaskSpec train = Script::training("train");
  train.request.share = MilliGpu(600);
  train.request.memory = MiB(16 * 1024);
  ASSERT_TRUE(s.submit(train));
  ServiceSpec chat = Script::service("chat", 1, 1);
  chat.request.share = MilliGpu(300);
  chat.request.memory = MiB(8 * 1024);
  ASSERT_TRUE(s.submit(chat));
  EXPECT_EQ(s.where("train"), "starting n0:0");
  EXPECT_EQ(s.where("chat.0"), "starting n0:0");
  train.name = "train2";
  ASSERT_TRUE(s.submit(train));
  EXPECT_EQ(s.where("train2"), "waiting compute");
}

TEST(Engine, S13_ScalesAfterItsTimeAndAGapProvesNothing) {
  Script s = small_pool();
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 2)));
  s.started("chat.0");
  s.healthy("chat.0");
  const auto load = [&](std::optional<std::int64_t> in_use, Micros time) {
    for (Micros t{0}; t < time; t += seconds(10)) {
      ASSERT_TRUE(s.event(ServiceMeasured{"chat", in_use}));
      s.pass(seconds(10));
    }
  };
  const auto replicas = [&] { return s.state.services[0].replicas.size(); };
  load(8, minutes(3) - seconds(10));
  EXPECT_EQ(replicas(), 1U);
  s.pass(minutes(2));  // no samples: unknown
  load(8, seconds(30));
  EXPECT_EQ(replicas(), 1U) << "a gap must not count as load";
  load(std::nullopt, seconds(30));
  load(8, minutes(2));
  EXPECT_EQ(replicas(), 1U);
  load(8, minutes(1) + seconds(20));
  EXPECT_EQ(replicas(), 2U);
  s.started("chat.1");
  s.healthy("chat.1");
  load(1, minutes(4));
  EXPECT_EQ(s.task("chat.1").phase, Phase::running);
  load(1, minutes(1) + seconds(20));
  EXPECT_EQ(s.task("chat.1").phase, Phase::stopping);
}

TEST(Engine, S7_AForeignProcessTakesADeviceOutAndItReturns) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  ASSERT_TRUE(s.event(ForeignMemoryChanged{"n0", 0, MiB(60'000)}));
  EXPECT_TRUE(s.decided("DeviceExcluded"));
  ASSERT_TRUE(s.submit(Script::training("t")));
  EXPECT_EQ(s.where("t"), "waiting no_such_device");
  ASSERT_TRUE(s.event(ForeignMemoryChanged{"n0", 0, MiB(50'000)}));  // 61 %: still out
  s.pass(minutes(10));
  EXPECT_EQ(s.where("t"), "waiting no_such_device");
  ASSERT_TRUE(s.event(ForeignMemoryChanged{"n0", 0, MiB(1'000)}));
  s.pass(minutes(4));
  EXPECT_EQ(s.where("t"), "waiting no_such_device");
  s.pass(minutes(2));
  EXPECT_EQ(s.where("t"), "starting n0:0");
}

TEST(Engine, D7_AGangStartsWholeOrNotAtAll) {
  Script s;
  s.configure();
  for (const char* n : {"n0", "n1", "n2"}) s.node(n, n, 4);
  ASSERT_TRUE(s.submit(Script::training("a", 1)));
  ASSERT_TRUE(s.submit(Script::training("gang", 10)));
  EXPECT_EQ(s.where("gang"), "starting n1:0,1,2,3 n2:0,1,2,3 n0:1,2");
  ASSERT_TRUE(s.submit(Script::training("late", 12)));
  EXPECT_EQ(s.where("late"), "waiting whole_devices");
}

TEST(Engine, D7_TwoGangsThatCouldEachStartAloneDoNotDeadlock) {
  Script s;
  s.configure();
  for (const char* n : {"n0", "n1"}) s.node(n, n, 4);
  ASSERT_TRUE(s.submit(Script::training("one", 8)));
  ASSERT_TRUE(s.submit(Script::training("two", 8)));
  s.started("one");
  EXPECT_EQ(s.where("two"), "waiting whole_devices");
  s.exited("one", 0);
  EXPECT_TRUE(s.where("two").starts_with("starting"));
}

TEST(Engine, S14_TheGuardHoldsInWhatRemains) {
  Script s;
  s.spec.inference_guard_min = 4;
  s.spec.preempt.protect_min = minutes(1);
  s.configure();
  for (const char* n : {"n0", "n1", "n2"}) s.node(n, n, 4);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "t" + std::to_string(i);
    ASSERT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(2));
  const auto guard_nodes = [&] {
    std::set<std::string> names;
    for (const auto& d : s.state.devices) {
      if (d.role == Role::guard) names.insert(s.state.node(d.node).name);
    }
    return names;
  };
  ASSERT_EQ(guard_nodes().size(), 1U);
  const std::string lost = *guard_nodes().begin();
  ASSERT_TRUE(s.event(NodeLost{lost}));
  EXPECT_TRUE(s.state.conditions.contains("guard_unmet"));
  int yielding = 0;
  s.state.tasks.for_each([&](const TaskState& t) {
    if (t.phase != Phase::yielding) return;
    ++yielding;
    EXPECT_EQ(t.yield_mode, ReleaseMode::on_demand);
  });
  EXPECT_EQ(yielding, 4);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "t" + std::to_string(i);
    if (s.task(name).phase == Phase::yielding) {
      s.checkpoint(name);
      s.exited(name, 75);
    }
  }
  EXPECT_FALSE(s.state.conditions.contains("guard_unmet"));
}

// Replicas are spread by themselves, so the loss of one of four domains leaves three quarters.
TEST(Engine, S14_ALostDomainLeavesTheReplicasOfTheOthers) {
  Script s;
  s.spec.inference_guard_min = 16;
  s.configure();
  for (const char* n : {"a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"}) {
    s.node(n, std::string(1, n[0]), 4);
  }
  ASSERT_TRUE(s.submit(Script::service("chat", 8, 8)));
  std::map<std::uint16_t, int> by_domain;
  for (int i = 0; i < 8; ++i) {
    const TaskState& replica = s.task("chat." + std::to_string(i));
    ASSERT_EQ(replica.phase, Phase::starting);
    const DeviceState& device = s.state.device(replica.slots.front().device);
    ++by_domain[s.state.node(device.node).domain.value];
  }
  ASSERT_EQ(by_domain.size(), 4U);
  for (const auto& [domain, replicas] : by_domain) EXPECT_EQ(replicas, 2);
}

// Where they are told to be apart, no domain holds two, and who finds none waits and says so.
TEST(Engine, D7_ReplicasApartByDomainWaitRatherThanShareOne) {
  Script s;
  s.configure();
  for (const char* n : {"a", "b"}) s.node(n, n, 4);
  ServiceSpec service = Script::service("chat", 3, 3);
  service.request.near.apart = Cell::domain;
  ASSERT_TRUE(s.submit(service));
  EXPECT_EQ(s.task("chat.0").phase, Phase::starting);
  EXPECT_EQ(s.task("chat.1").phase, Phase::starting);
  EXPECT_EQ(s.where("chat.2"), "waiting apart");
  s.node("c", "c", 4);
  EXPECT_EQ(s.task("chat.2").phase, Phase::starting);
}

// Two adapters of one base model share the device that holds its weights, though another is freer
// and a third fuller.
TEST(Engine, C2_WhoHasTheSameWeightsShareADevice) {
  Script s;
  s.configure();
  for (const char* n : {"a", "b", "c"}) s.node(n, n, 1);
  const auto part = [](const std::string& name, int share, const std::string& weights) {
    TaskSpec spec = Script::training(name);
    spec.request.share = MilliGpu(share);
    spec.request.memory = MiB(8'192);
    spec.request.near.weights = weights;
    return spec;
  };
  TaskSpec held = part("base", 300, "llama");
  held.request.near.exclude = {"a", "c"};
  TaskSpec fuller = part("full", 600, "other");
  fuller.request.near.exclude = {"b", "c"};
  ASSERT_TRUE(s.submit(held));
  ASSERT_TRUE(s.submit(fuller));
  ASSERT_TRUE(s.submit(part("adapter", 300, "llama")));
  EXPECT_EQ(s.where("adapter"), "starting b:0");
  ASSERT_TRUE(s.submit(part("too-large", 500, "llama")));
  EXPECT_EQ(s.where("too-large"), "starting c:0");
}

// Its CPU is free again when a task has ended, and whoever waited for it is looked at.
TEST(Engine, C1_WhoWaitsForCpuStartsWhenItIsGivenBack) {
  Script s;
  s.configure();
  NodeJoined joined{{"n0", "d0", {}}};
  joined.spec.cpu_milli = 8'000;
  for (int i = 0; i < 4; ++i) {
    joined.spec.devices.push_back({"u" + std::to_string(i), "A100-80G", MiB(81'920), false});
  }
  ASSERT_TRUE(s.event(joined));
  const auto with_cpu = [](const std::string& name, std::int64_t milli) {
    TaskSpec spec = Script::training(name);
    spec.request.cpu_milli = milli;
    return spec;
  };
  ASSERT_TRUE(s.submit(with_cpu("a", 6'000)));
  ASSERT_TRUE(s.submit(with_cpu("b", 4'000)));
  EXPECT_EQ(s.where("a"), "starting n0:0");
  EXPECT_EQ(s.where("b"), "waiting host");
  EXPECT_FALSE(s.submit(with_cpu("c", 8'001)));
  s.started("a");
  s.exited("a", 0);
  EXPECT_EQ(s.where("b"), "starting n0:0");
  // A node that comes back with more has room for more.
  ASSERT_TRUE(s.submit(with_cpu("d", 6'000)));
  EXPECT_EQ(s.where("d"), "waiting host");
  joined.spec.cpu_milli = 16'000;
  ASSERT_TRUE(s.event(joined));
  EXPECT_EQ(s.task("d").phase, Phase::starting);
}

TEST(Engine, S1_FewerDevicesThanTheGuardLendNothing) {
  Script s;
  s.spec.total_gpus = 64;
  s.spec.inference_guard_min = 16;
  s.spec.elastic_buffer = 4;
  s.configure();
  s.node("n0", "d0", 8);
  EXPECT_TRUE(s.state.conditions.contains("guard_unmet"));
  EXPECT_TRUE(s.state.conditions.contains("devices_missing"));
  ASSERT_TRUE(s.submit(Script::training("t")));
  EXPECT_EQ(s.where("t"), "waiting guard");
}

TEST(Engine, S1_AGuardAboveTheFilesOwnTotalIsRefused) {
  Script s;
  s.spec.total_gpus = 8;
  s.spec.inference_guard_min = 9;
  const auto refused = s.event(PoolConfigured{s.spec});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context, "pool.inference_guard_min");
}

TEST(Engine, D1_InteractiveYieldsToInferenceAlone) {
  Script s;
  s.spec.preempt.protect_min = minutes(1);
  s.configure();
  s.node("n0", "d0", 1);
  TaskSpec notebook = Script::training("notebook");
  notebook.tier = "interactive";
  ASSERT_TRUE(s.submit(notebook));
  s.started("notebook");
  s.work(hours(2));
  TaskSpec urgent = Script::training("urgent");
  urgent.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(urgent));
  EXPECT_EQ(s.task("notebook").phase, Phase::running);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  EXPECT_EQ(s.task("notebook").phase, Phase::yielding);
}

TEST(Engine, F6_TheStatedChangeStartsTheTask) {
  Script s = small_pool();
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(s.submit(Script::training(name)));
  const TaskId waiting = s.task("d").id;
  const Unblock unblock = find_unblock(s.state, waiting, s.now);
  ASSERT_NE(unblock.kind, Unblock::Kind::unknown);
  PoolState copy(s.state);
  apply_unblock(copy, unblock, s.now);
  EXPECT_NE(copy.tasks.at(waiting).phase, Phase::waiting) << to_text(s.state, unblock);
}

// ---- order (D6) ------------------------------------------------------------------------------

TEST(Engine, D6_S11_APreemptionBuysAnEarlierTurn) {
  Script s;
  s.spec.reserve.most = 0;
  s.configure();
  s.node("n0", "d0", 2);
  ASSERT_TRUE(s.submit(Script::training("long")));
  s.started("long");
  ASSERT_TRUE(s.submit(Script::training("older", 2)));
  s.pass(minutes(20));
  ASSERT_TRUE(s.submit(Script::training("victim")));
  s.started("victim");
  s.work(hours(1));
  TaskSpec urgent = Script::training("urgent");
  urgent.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(urgent));
  const bool is_long = s.task("long").phase == Phase::yielding;
  const std::string victim = is_long ? "long" : "victim";
  s.checkpoint(victim);
  s.exited(victim, 75);
  s.started("urgent");
  EXPECT_EQ(s.task(victim).due, s.task(victim).submitted + hours(4) - minutes(30));
  s.exited(is_long ? "victim" : "long", 0);
  ASSERT_TRUE(s.where(victim).starts_with("starting"));
  s.started(victim);
  EXPECT_EQ(place_in_queue(s.state, s.task("older")), 1);
  for (int i = 0; i < 20; ++i) {
    TaskState copy = s.task(victim);
    copy.preemptions = i;
    set_due(s.state, copy);
    EXPECT_GE(copy.due, copy.submitted + s.spec.preempt.wait_min);
  }
}

TEST(Engine, D6_OfOneTierTheEarliestVirtualDeadlineGoesFirst) {
  Script s;
  s.spec.reserve.most = 0;
  s.configure();
  s.node("n0", "d0", 1);
  ASSERT_TRUE(s.submit(Script::training("runs")));
  ASSERT_TRUE(s.submit(Script::training("first")));
  s.pass(minutes(20));
  ASSERT_TRUE(s.submit(Script::training("second", 1)));
  TaskState& second = *s.state.tasks.find(s.task("second").id);
  EXPECT_EQ(place_in_queue(s.state, second), 2);
  PoolState again(s.state);
  TaskState& preempted = *again.tasks.find(second.id);
  preempted.preemptions = 1;
  set_due(again, preempted);
  rebuild_index(again);
  EXPECT_EQ(place_in_queue(again, preempted), 1) << "half an hour earlier than it came";
}

TEST(Engine, G3_ReplayEndsInTheSameState) {
  Script s = small_pool();
  std::vector<std::pair<Time, std::variant<Event, Decision>>> records;
  PoolState replayed;
  const auto note = [&](const Event& e) {
    const std::uint64_t before = s.state.sequence;
    ASSERT_TRUE(s.event(e));
    ASSERT_EQ(s.state.sequence, before + 1 + s.last.decisions.size());
  };
  // The pool's own start is replayed from a snapshot, the rest record by record.
  auto snapshot = decode_snapshot(encode_snapshot(s.state));
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(hash_of(*snapshot), hash_of(s.state));
  for (const char* name : {"a", "b", "c", "d"}) {
    const Event e = TaskSubmitted{Script::training(name)};
    note(e);
    apply(*snapshot, s.now, *decode_event(encode(e)));
    for (const Decision& d : s.last.decisions) {
      apply(*snapshot, s.now, *decode_decision(encode(d)));
    }
    EXPECT_EQ(hash_of(*snapshot), hash_of(s.state));
    EXPECT_TRUE(index_is_current(*snapshot));
  }
}

}  // namespace
}  // namespace neap
