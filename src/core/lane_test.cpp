// Nobody starves: promises of a start, the lane that keeps them, and deadlines that were accepted
// (D6, S11, POLICIES 4). Requirement numbers are those of the specification.
#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/deadline.h"
#include "core/rules/explain.h"
#include "core/rules/lane.h"
#include "core/rules/preempt.h"
#include "core/testing/script.h"

namespace neap::lane_test {
namespace {

using testing::Script;

// Two nodes of four devices; the first is the lane.
Script pool_with_lane(int lane = 4) {
  Script s;
  s.spec.fairness.lane = lane;
  s.configure();
  s.node("n0", "d0", 4);
  s.node("n1", "d1", 4);
  return s;
}

// With signals alone it saves when it is asked; it runs until it is stopped.
TaskSpec interactive(const std::string& name, int gpus) {
  TaskSpec task = Script::training(name, gpus);
  task.tier = "interactive";
  task.contract = {};
  task.contract.signals = true;
  return task;
}

TaskSpec of_tier(const std::string& name, int gpus, const std::string& tier) {
  TaskSpec task = Script::training(name, gpus);
  task.tier = tier;
  return task;
}

void run(Script& s, const TaskSpec& task) {
  ASSERT_TRUE(s.submit(task));
  s.started(task.name);
}

// Interactive training holds the core, a borrower the lane.
Script full_pool() {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  run(s, Script::training("guest", 4));
  return s;
}

// ---- the lane ------------------------------------------------------------------------------

TEST(Lane, D6_ItIsWholeNodesFromTheFirstOn) {
  Script s;
  s.spec.fairness.lane = 3;
  s.spec.inference_guard_min = 2;
  s.spec.elastic_buffer = 1;
  s.configure();
  s.node("n0", "d0", 4);
  s.node("n1", "d1", 4);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(s.state.devices[static_cast<std::size_t>(i)].role, Role::lane);
  EXPECT_EQ(s.state.devices[7].role, Role::guard);
  EXPECT_EQ(s.state.devices[5].role, Role::buffer);
  EXPECT_TRUE(s.state.conditions.empty());
}

TEST(Lane, D6_ItNeverTakesTheGuardAndThePoolSaysWhatIsMissing) {
  Script s;
  s.spec.fairness.lane = 8;
  s.spec.inference_guard_min = 2;
  s.configure();
  s.node("n0", "d0", 4);
  s.node("n1", "d1", 4);
  EXPECT_EQ(s.state.index->lane.size(), 4u);
  EXPECT_EQ(s.state.conditions.count("lane_unmet"), 1u);
  EXPECT_EQ(s.state.devices[7].role, Role::guard);
}

TEST(Lane, D6_RoundedUpItLeavesDevicesForOthers) {
  for (const int asked : {1, 4}) {
    Script s;
    s.spec.fairness.lane = asked;
    s.configure();
    s.node("n0", "d0", 4);
    EXPECT_EQ(s.state.index->lane.size(), asked == 4 ? 4u : 0u) << asked;
    EXPECT_EQ(s.state.conditions.count("lane_unmet"), asked == 4 ? 0u : 1u) << asked;
  }
}

TEST(Lane, D6_BatchThatLeavesInTimeBorrowsItAndNobodyElse) {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  EXPECT_EQ(s.where("talk"), "running n1:0,1,2,3");
  ASSERT_TRUE(s.submit(interactive("more", 1)));
  EXPECT_EQ(s.task("more").phase, Phase::waiting);
  TaskSpec slow = Script::training("slow", 1);
  slow.contract.on_demand = false;
  slow.contract.interval = hours(1);
  ASSERT_TRUE(s.submit(slow));
  EXPECT_EQ(s.task("slow").phase, Phase::waiting);
  TaskSpec tied = Script::training("tied", 1);
  tied.windows = {{hours(1), hours(2)}};
  ASSERT_TRUE(s.submit(tied));
  EXPECT_EQ(s.task("tied").phase, Phase::waiting);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  EXPECT_NE(s.where("chat.0").substr(0, 11), "starting n0");
  ASSERT_TRUE(s.submit(Script::training("guest", 2)));
  EXPECT_EQ(s.where("guest"), "starting n0:0,1");
}

TEST(Lane, D6_ABorrowerHasNoProtectionThere) {
  Script s = full_pool();
  EXPECT_FALSE(is_protected(s.state, s.task("guest"), s.now));
  EXPECT_TRUE(is_protected(s.state, s.task("talk"), s.now));
}

TEST(Lane, D6_WithoutItNothingIsPromisedAndNobodyIsForced) {
  Script s = pool_with_lane(0);
  run(s, interactive("talk", 4));
  run(s, interactive("talk2", 4));
  ASSERT_TRUE(s.submit(Script::training("job")));
  EXPECT_EQ(s.task("job").bound, BoundCode::none);
  s.pass(hours(6));
  EXPECT_FALSE(s.task("job").forced);
  EXPECT_EQ(s.task("job").phase, Phase::waiting);
  EXPECT_TRUE(s.state.index->promised.empty());
}

// ---- the promise -----------------------------------------------------------------------------

TEST(Promise, D6_TheBoundIsTheWaitOfItsTierTheClearingAndThoseAhead) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("one")));
  const TaskState& one = s.task("one");
  EXPECT_EQ(one.bound, BoundCode::issued);
  EXPECT_EQ(one.forced_at, one.submitted + hours(4));
  // T_r 11 min; grace 60 s, SIGTERM 30 s, SIGKILL, and 60 s until the memory is free.
  EXPECT_EQ(one.start_by, one.forced_at + minutes(11) + seconds(150));
  ASSERT_TRUE(s.submit(Script::training("two", 4)));
  // P 30 min, on demand 5 s + 10 s + 5 s, 95 s to stop it: of one device; of a node's four any may
  // be free while the fourth is not.
  const Micros tenure = minutes(30) + seconds(20) + seconds(95);
  EXPECT_EQ(s.task("two").start_by, s.task("two").forced_at + minutes(11) + seconds(150) + tenure);
  EXPECT_EQ(s.task("two").ahead, 1);
}

TEST(Promise, D6_WhoGetsNoneIsTold) {
  Script s = full_pool();
  TaskSpec tied = Script::training("tied");
  tied.windows = {{hours(1), hours(2)}};
  TaskSpec apart = Script::training("apart");
  apart.request.near.exclude = {"n1"};
  ASSERT_TRUE(s.submit(tied));
  ASSERT_TRUE(s.submit(apart));
  ASSERT_TRUE(s.submit(Script::training("large", 5)));
  ASSERT_TRUE(s.submit(interactive("hurry", 1)));
  EXPECT_EQ(s.task("tied").bound, BoundCode::windows);
  EXPECT_EQ(s.task("apart").bound, BoundCode::constrained);
  EXPECT_EQ(s.task("large").bound, BoundCode::too_large);
  EXPECT_EQ(s.task("hurry").bound, BoundCode::not_batch);
}

TEST(Promise, D6_OneThatWouldBreakAnotherIsNotMadeAndThePoolSaysSo) {
  Script s = full_pool();
  s.spec.tiers[2].wait = hours(1);  // goes first
  s.configure();
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  const Time by = s.task("job").start_by;
  ASSERT_TRUE(s.submit(of_tier("near", 4, "train_deadline_near")));
  EXPECT_EQ(s.task("near").bound, BoundCode::infeasible);
  EXPECT_EQ(s.state.conditions.count("infeasible"), 1u);
  EXPECT_EQ(s.task("job").start_by, by);
  ASSERT_TRUE(s.submit(Script::training("later")));
  EXPECT_EQ(s.task("later").bound, BoundCode::infeasible) << "no more are issued";
}

TEST(Promise, D6_AnEnvelopeKeepsRoomForThoseWhoComeLaterAndGoFirst) {
  Script s = full_pool();
  s.spec.tiers[2].wait = hours(1);
  s.spec.tiers[2].envelope = {4, 0};
  s.configure();
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  ASSERT_TRUE(s.submit(of_tier("near", 4, "train_deadline_near")));
  EXPECT_EQ(s.task("near").bound, BoundCode::issued);
  // Four devices may be four tasks one after the other: so much is kept, and no more.
  int made = 0;
  for (; made < 20; ++made) {
    const std::string name = "near" + std::to_string(made);
    ASSERT_TRUE(s.submit(of_tier(name, 4, "train_deadline_near")));
    if (s.task(name).bound == BoundCode::infeasible) break;
  }
  EXPECT_GE(made, 3);
  EXPECT_LT(made, 8);
  EXPECT_TRUE(s.state.conditions.contains("infeasible"));
}

TEST(Promise, D6_OtherTermsAreJudgedAnew) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("job")));
  const Time by = s.task("job").start_by;
  s.configure();
  EXPECT_EQ(s.task("job").start_by, by) << "the same terms";
  s.spec.fairness.lane_within = minutes(20);
  s.configure();
  EXPECT_EQ(s.task("job").start_by, by + minutes(9));
  s.spec.fairness.lane = 0;
  s.configure();
  EXPECT_EQ(s.task("job").bound, BoundCode::none);
  EXPECT_TRUE(s.state.index->promised.empty());
}

// ---- forced starts -----------------------------------------------------------------------------

TEST(Forced, D6_TheLaneIsLeftByItsBorrowersAndTheForcedTaskStartsInTime) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("job", 2)));
  s.work(hours(4) - minutes(1));
  EXPECT_EQ(s.task("guest").phase, Phase::running);
  s.pass(minutes(2));
  EXPECT_TRUE(s.task("job").forced);
  EXPECT_EQ(s.task("guest").phase, Phase::yielding);
  EXPECT_EQ(s.task("talk").phase, Phase::running) << "interactive training is nobody's victim here";
  ASSERT_TRUE(s.submit(Script::training("late")));  // no borrower comes now
  EXPECT_EQ(s.task("late").phase, Phase::waiting);
  s.checkpoint("guest");
  s.exited("guest", 75);
  EXPECT_EQ(s.where("job"), "starting n0:0,1");
  EXPECT_LE(s.task("job").placed_at, s.task("job").start_by);
  EXPECT_EQ(s.task("job").lane_until, s.now + minutes(30));
  EXPECT_EQ(s.task("late").phase, Phase::starting) << "the rest of the lane is lent again";
}

TEST(Forced, D6_NobodyPassesTheFirstInTheLane) {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  run(s, Script::training("a", 3));
  run(s, Script::training("b", 1));
  ASSERT_TRUE(s.submit(Script::training("gang", 4)));
  ASSERT_TRUE(s.submit(Script::training("small", 1)));
  s.work(hours(4) + minutes(1));
  s.checkpoint("b");
  s.exited("b", 75);
  EXPECT_EQ(s.task("gang").phase, Phase::waiting);
  EXPECT_EQ(s.task("small").phase, Phase::waiting) << "it would fit and would hold up the gang";
  s.checkpoint("a");
  s.exited("a", 75);
  EXPECT_EQ(s.where("gang"), "starting n0:0,1,2,3");
  EXPECT_EQ(s.task("small").phase, Phase::waiting);
}

TEST(Forced, D6_WhoWasStartedThereStaysForItsTimeAndThenLeavesForTheNext) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("first", 4)));
  ASSERT_TRUE(s.submit(Script::training("second", 4)));
  s.work(hours(4) + minutes(1));
  s.checkpoint("guest");
  s.exited("guest", 75);
  s.started("first");
  s.work(minutes(25));
  EXPECT_EQ(s.task("first").phase, Phase::running);
  s.pass(minutes(6));
  EXPECT_EQ(s.task("first").phase, Phase::yielding);
  s.checkpoint("first");
  s.exited("first", 75);
  EXPECT_EQ(s.where("second"), "starting n0:0,1,2,3");
  EXPECT_LE(s.task("second").placed_at, s.task("second").start_by);
}

TEST(Forced, D6_WithoutProtectionItStillHasTimeToComeUp) {
  Script s = pool_with_lane();
  s.spec.preempt.protect_min = s.spec.preempt.wait_min = Micros(0);
  s.configure();
  run(s, interactive("talk", 4));
  run(s, Script::training("guest", 4));
  TaskSpec job = Script::training("job", 4);
  job.contract.restore = Micros(0);
  ASSERT_TRUE(s.submit(job));
  s.work(hours(4) + minutes(1));
  s.checkpoint("guest");
  s.exited("guest", 75);  // it is forced again at once
  EXPECT_EQ(s.task("job").phase, Phase::starting);
  s.pass(seconds(30));
  s.started("job");
  EXPECT_EQ(s.task("job").phase, Phase::running);
  s.pass(seconds(31));
  EXPECT_EQ(s.task("job").phase, Phase::yielding);
}

TEST(Forced, D6_ItGoesBeforeHeavierTiersWhereverThereIsRoom) {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  run(s, Script::training("guest", 4));
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  s.work(hours(4) + minutes(1));
  ASSERT_TRUE(s.submit(interactive("hurry", 4)));
  s.exited("talk", 0);
  EXPECT_EQ(s.where("job"), "starting n1:0,1,2,3");
  EXPECT_EQ(s.task("hurry").phase, Phase::waiting);
}

TEST(Forced, D6_AClaimOnTheLaneIsGivenUpForIt) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  s.work(hours(3) + minutes(58));
  ASSERT_TRUE(s.submit(of_tier("near", 4, "train_deadline_near")));
  ASSERT_TRUE(s.state.plans.contains(s.task("near").id)) << "the borrower yields to it";
  s.pass(minutes(3));
  EXPECT_FALSE(s.state.plans.contains(s.task("near").id));
  s.checkpoint("guest");
  s.exited("guest", 75);
  EXPECT_EQ(s.where("job"), "starting n0:0,1,2,3");
}

TEST(Forced, D6_APauseAsksNobodyToLeave) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  ASSERT_TRUE(s.event(PauseRequested{"ops", "incident"}));
  s.work(hours(5));
  EXPECT_EQ(s.task("guest").phase, Phase::running);
  ASSERT_TRUE(s.event(ResumeRequested{"ops"}));
  EXPECT_EQ(s.task("guest").phase, Phase::yielding);
}

TEST(Forced, D6_ItIsTheSameAfterARestart) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(Script::training("job", 4)));
  ASSERT_TRUE(s.submit(Script::training("next", 4)));
  for (int i = 0; i < 30; ++i) {
    s.work(minutes(10));
    if (s.task("guest").phase == Phase::yielding) s.exited("guest", 75);
    if (s.task("job").phase == Phase::starting) s.started("job");
    EXPECT_TRUE(index_is_current(s.state));
    auto restored = decode_snapshot(encode_snapshot(s.state));
    ASSERT_TRUE(restored);
    EXPECT_EQ(hash_of(*restored), hash_of(s.state));
    s.state = std::move(*restored);
  }
  EXPECT_TRUE(s.task("job").lane_until > Time(0));
}

// A task of an always preempted queue: each preemption moves its place forward, until it is forced
// within the bound that it was told.
TEST(Forced, S11_AQueueThatIsPreemptedAgainAndAgainIsForcedWithinItsBound) {
  Script s = pool_with_lane();
  s.spec.preempt.budget_per_day = 100;
  s.spec.preempt.protect_min = Micros(0);
  s.spec.preempt.enabled = true;
  s.configure();
  TaskSpec job = Script::training("job", 4);
  job.contract.restore = seconds(60);
  run(s, interactive("talk", 4));
  run(s, job);
  Time due = s.task("job").due;
  for (int times = 1; times <= 4; ++times) {
    s.work(minutes(20));
    const std::string name = "near" + std::to_string(times);
    ASSERT_TRUE(s.submit(of_tier(name, 4, "train_deadline_near")));
    ASSERT_EQ(s.task("job").phase, Phase::yielding) << times;
    s.checkpoint("job");
    s.exited("job", 75);
    EXPECT_EQ(s.task("job").preemptions, times);
    EXPECT_EQ(s.task("job").due, due - minutes(30)) << "compensation";
    due = s.task("job").due;
    ASSERT_EQ(s.task("job").bound, BoundCode::issued) << times;
    EXPECT_LE(s.task("job").forced_at, std::max(due, s.now + s.spec.preempt.wait_min));
    s.started(name);
    if (times == 4) break;
    s.work(minutes(5));
    s.exited(name, 0);
    ASSERT_EQ(s.task("job").phase, Phase::starting) << times;
    s.started("job");
  }
  // The last one would hold the devices for ever: it is a borrower, and has to leave.
  const Time by = s.task("job").start_by;
  while (s.task("near4").phase == Phase::running && s.now < by) s.work(minutes(1));
  EXPECT_TRUE(s.task("job").forced);
  ASSERT_EQ(s.task("near4").phase, Phase::yielding);
  s.checkpoint("near4");
  s.exited("near4", 75);
  EXPECT_EQ(s.where("job"), "starting n0:0,1,2,3");
  EXPECT_LE(s.task("job").placed_at, by);
}

// ---- deadlines
// -----------------------------------------------------------------------------------

TaskSpec due_in(const std::string& name, Micros time, Time now) {
  TaskSpec task = Script::training(name);
  task.work = hours(2);
  task.deadline = now + time;
  return task;
}

// ---- a drill beside it ---------------------------------------------------------------------

// What a burst takes from one, that one takes from the next.
TEST(Lane, F12_ADrillCountsWhoLeavesTheLaneForWhomItDisplaced) {
  Script s = pool_with_lane();
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 2)));
  s.started("chat.0");
  s.healthy("chat.0");
  run(s, Script::training("guest", 4));  // the lane alone has room for it
  run(s, Script::training("large", 3));
  s.work(hours(1));
  DrillLimits limits;
  limits.ready_within = limits.resume_within = hours(20);
  limits.pause = Micros(0);
  ASSERT_TRUE(s.event(DrillStarted{"chat", 2, hours(20), limits, "ann"}));
  for (int i = 0; i < 20 && s.task("large").phase == Phase::running; ++i) s.work(minutes(1));
  ASSERT_EQ(s.task("large").phase, Phase::yielding) << explain_wait(s.state, s.task("chat.1"));
  s.checkpoint("large");
  s.exited("large", 75);
  s.started("chat.1");
  s.healthy("chat.1");
  ASSERT_EQ(s.task("large").phase, Phase::waiting);
  EXPECT_EQ(s.state.drill.victims.size(), 1u);
  for (int i = 0; i < 60 && s.task("guest").phase == Phase::running; ++i) s.work(minutes(10));
  ASSERT_EQ(s.task("guest").phase, Phase::yielding);
  ASSERT_EQ(s.state.drill.victims.size(), 2u);
  EXPECT_EQ(s.state.drill.victims.back().task, s.task("guest").id);
}

// ---- what is told ----------------------------------------------------------------------------

TEST(Lane, F6_WhoWaitsBesideItIsToldWhoItIsFor) {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  ASSERT_TRUE(s.submit(interactive("more", 2)));
  EXPECT_NE(explain_wait(s.state, s.task("more"))
                .find("; 4 of 4 devices of the lane of forced starts (fairness.lane) are free, "
                      "which carries batch training alone"),
            std::string::npos)
      << explain_wait(s.state, s.task("more"));
  TaskSpec slow = Script::training("slow", 2);
  slow.contract.on_demand = false;
  slow.contract.interval = hours(2);
  ASSERT_TRUE(s.submit(slow));
  EXPECT_NE(explain_wait(s.state, s.task("slow")).find("which only tasks borrow that can leave it"),
            std::string::npos)
      << explain_wait(s.state, s.task("slow"));
}

// Five do not fit outside it, and never will; where its devices count, that is not said.
TEST(Lane, F6_ItCountsAmongWhatMayServeATask) {
  Script s = pool_with_lane();
  run(s, interactive("talk", 4));
  ASSERT_TRUE(s.submit(interactive("large", 5)));
  EXPECT_NE(explain_wait(s.state, s.task("large"))
                .find("only 4 usable devices may ever serve it, those of the lane of forced starts "
                      "not among them"),
            std::string::npos)
      << explain_wait(s.state, s.task("large"));
  run(s, Script::training("guest", 4));
  ASSERT_TRUE(s.submit(Script::training("eight", 8)));
  EXPECT_EQ(explain_wait(s.state, s.task("eight")).find("may ever serve it"), std::string::npos)
      << explain_wait(s.state, s.task("eight"));
}

TEST(Deadline, D6_ItIsAcceptedOnlyWhereItCanBeKept) {
  Script s = pool_with_lane(0);
  run(s, interactive("talk", 4));
  run(s, interactive("talk2", 4));
  ASSERT_TRUE(s.submit(due_in("fits", hours(2) + minutes(3), s.now)));
  ASSERT_TRUE(s.submit(due_in("late", hours(2) + minutes(2), s.now)));
  TaskSpec unknown = due_in("unknown", hours(9), s.now);
  unknown.work = std::nullopt;
  ASSERT_TRUE(s.submit(unknown));
  EXPECT_EQ(s.task("fits").deadline, DeadlineVerdict::accepted);
  EXPECT_EQ(s.task("late").deadline, DeadlineVerdict::too_soon);
  EXPECT_EQ(s.task("unknown").deadline, DeadlineVerdict::work_unknown);
  ASSERT_TRUE(s.event(WaitExpected{"train_normal", hours(1)}));
  ASSERT_TRUE(s.submit(due_in("waits", hours(3), s.now)));
  EXPECT_EQ(s.task("waits").deadline, DeadlineVerdict::too_soon)
      << "an hour of waiting is expected";
  EXPECT_FALSE(s.event(WaitExpected{"nobody", hours(1)}));
}

Script pool_of_deadlines() {
  Script s;
  s.spec.fairness.deadline_tier = "train_deadline_near";
  s.configure();
  s.node("n0", "d0", 4);
  run(s, interactive("talk", 4));
  return s;
}

TEST(Deadline, D6_ATaskNearItsDeadlineIsPromoted) {
  Script s = pool_of_deadlines();
  // 2 h of work, 3 min of restore, and max(24 min, 30 min) of margin.
  ASSERT_TRUE(s.submit(due_in("job", hours(4), s.now)));
  const auto tier = [&](const char* name) { return s.state.tier(s.task(name).tier).name; };
  s.pass(hours(4) - hours(2) - minutes(34));
  EXPECT_EQ(tier("job"), "train_normal");
  s.pass(minutes(1));
  EXPECT_EQ(tier("job"), "train_deadline_near");
  EXPECT_EQ(s.state.shape(s.task("job").shape).tier, s.task("job").tier);
  EXPECT_TRUE(index_is_current(s.state));
  s.pass(minutes(31));
  EXPECT_EQ(tier("job"), "train_normal") << "it cannot be kept any more";
}

TEST(Deadline, D6_AtMostAPartOfATeamsDemandIsPromoted) {
  Script s = pool_of_deadlines();
  for (int i = 0; i < 10; ++i) {
    TaskSpec task = due_in("job" + std::to_string(i), hours(3), s.now);
    task.team = "a";
    ASSERT_TRUE(s.submit(task));
  }
  TaskSpec other = due_in("other", hours(3), s.now);
  other.team = "b";
  ASSERT_TRUE(s.submit(other));
  s.pass(minutes(40));
  const auto promoted = [&] {
    int count = 0;
    s.state.tasks.for_each([&](const TaskState& task) {
      const bool live = task.spec.team == "a" && !has_ended(task.phase);
      count += live && task.tier != own_tier(s.state, task) ? 1 : 0;
    });
    return count;
  };
  EXPECT_EQ(promoted(), 3) << "30 % of ten";
  EXPECT_NE(s.task("other").tier, own_tier(s.state, s.task("other"))) << "one is always allowed";
  ASSERT_TRUE(s.event(TaskCancelRequested{"job0", "user"}));
  s.pass(minutes(2));
  EXPECT_EQ(promoted(), 2) << "30 % of nine";
}

TEST(Deadline, D6_ATaskThatWouldMissAnAcceptedDeadlineCostsAllThereIs) {
  Script s;
  s.configure();
  s.node("n0", "d0", 4);
  run(s, due_in("kept", hours(2) + minutes(4), s.now));
  run(s, due_in("refused", hours(1), s.now));
  s.work(minutes(40));
  const auto cost = [&](const char* name) {
    return cheapest_offer(s.state, s.task(name), s.now, s.now + minutes(11))->cost;
  };
  EXPECT_LT(cost("kept"), std::int64_t{1} << 62) << "a restore fits";
  EXPECT_LT(cost("refused"), std::int64_t{1} << 62) << "nobody promised to keep it";
  ASSERT_TRUE(s.event(WaitExpected{"train_normal", minutes(5)}));
  EXPECT_EQ(cost("kept"), std::int64_t{1} << 62);
}

TEST(Deadline, D1_InteractiveTrainingYieldsToInferenceAlone) {
  Script s = full_pool();
  ASSERT_TRUE(s.submit(of_tier("near", 1, "train_deadline_near")));
  ASSERT_TRUE(s.submit(Script::training("job", 1)));
  s.work(hours(5));
  const auto demand = [&](const char* name) { return s.state.shape(s.task(name).shape); };
  EXPECT_TRUE(s.task("job").forced || s.task("job").phase != Phase::waiting);
  EXPECT_FALSE(may_yield_to(s.state, s.task("talk"), demand("near")));
  EXPECT_FALSE(may_yield_to(s.state, s.task("talk"), demand("job")));
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  EXPECT_EQ(s.task("talk").phase, Phase::yielding);
}

}  // namespace
}  // namespace neap::lane_test
