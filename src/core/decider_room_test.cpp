// Room kept for a task that others pass, moves at boundaries, consolidation at low tide, step by
// step. docs/decisions/0011.
#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/defragment.h"
#include "core/testing/script.h"

namespace neap::decider_room_test {
namespace {

using testing::Script;

TaskSpec share(const std::string& name, std::int64_t milli) {
  TaskSpec task = Script::training(name);
  task.request.share = MilliGpu(milli);
  task.request.memory = MiB(8'192);
  return task;
}

void run(Script& s, TaskSpec task) {
  const std::string name = task.name;
  ASSERT_TRUE(s.submit(std::move(task)));
  ASSERT_EQ(s.task(name).phase, Phase::starting) << name;
  s.started(name);
}

// One node of two devices, each with a task on 30 % of it that says nothing of its end; both have
// run for long.
Script two_halves() {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  run(s, share("a", 300));
  run(s, share("filler", 700));
  run(s, share("b", 300));
  s.exited("filler", 0);
  s.work(hours(4));
  EXPECT_EQ(s.where("a"), "running n0:0");
  EXPECT_EQ(s.where("b"), "running n0:1");
  return s;
}

std::string mover(const Script& s) { return s.task("a").phase == Phase::yielding ? "a" : "b"; }

// ---- room is kept ----------------------------------------------------------------------------

TaskSpec lasting(const std::string& name, Micros work, int gpus = 1) {
  TaskSpec task = Script::training(name, gpus);
  task.work = work;
  return task;
}

// Neither can be asked to leave in time: its boundaries are far apart.
TaskSpec staying(const std::string& name, Micros work) {
  TaskSpec task = lasting(name, work);
  task.contract.on_demand = false;
  task.contract.interval = hours(6);
  return task;
}

// Two devices, held by tasks that end after one and after two hours; a task of both waits.
Script passed_pool() {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  run(s, lasting("one", hours(1)));
  run(s, lasting("two", hours(2)));
  EXPECT_TRUE(s.submit(lasting("large", hours(1), 2)));
  return s;
}

TEST(Room, D6_IsKeptOnceOthersHavePassed) {
  Script s = passed_pool();
  s.work(minutes(30));
  EXPECT_TRUE(s.state.plans.empty()) << "nobody has passed it";
  s.work(minutes(30));
  ASSERT_TRUE(s.submit(lasting("late", hours(1))));
  s.exited("one", 0);
  // It waits for both devices, and the one that is free now goes to who came later.
  EXPECT_EQ(s.where("late"), "starting n0:0");
  s.started("late");
  s.work(minutes(2));
  ASSERT_TRUE(s.state.plans.contains(s.task("large").id));
  EXPECT_EQ(s.state.plans.at(s.task("large").id).kind, PlanKind::reservation);
  EXPECT_EQ(s.where("large"), "waiting yield_pending");
  ASSERT_TRUE(s.submit(staying("later", hours(3))));
  s.exited("two", 0);
  EXPECT_EQ(s.where("later"), "waiting whole_devices") << "what is kept is not free";
  s.exited("late", 0);
  EXPECT_EQ(s.where("large"), "starting n0:0,1");
}

// Room is kept for "large": "late" has left its device, "two" stays for an hour.
Script kept_pool() {
  Script s = passed_pool();
  s.work(hours(1));
  EXPECT_TRUE(s.submit(lasting("late", hours(1))));
  s.exited("one", 0);
  s.started("late");
  s.work(minutes(2));
  EXPECT_TRUE(s.state.plans.contains(s.task("large").id));
  s.exited("late", 0);
  return s;
}

const Plan& plan_of_large(const Script& s) { return s.state.plans.at(s.task("large").id); }

TEST(Room, D6_IsLentToWhoEndsBeforeItIsNeeded) {
  Script s = kept_pool();
  ASSERT_TRUE(s.submit(staying("too_long", hours(3))));
  ASSERT_TRUE(s.submit(staying("short", minutes(20))));
  EXPECT_EQ(s.where("too_long"), "waiting whole_devices");
  EXPECT_EQ(s.where("short"), "starting n0:0") << "another shape's wait does not keep it";
  EXPECT_EQ(plan_of_large(s).lent_to, std::vector<TaskId>{s.task("short").id});
  EXPECT_EQ(s.where("large"), "waiting yield_pending");
  s.started("short");
  // Behind one of its own shape that is too long.
  ASSERT_TRUE(s.submit(staying("too_long_too", hours(3))));
  ASSERT_TRUE(s.submit(staying("short_too", minutes(10))));
  s.exited("short", 0);
  EXPECT_EQ(s.where("short_too"), "starting n0:0");
  s.started("short_too");
  s.exited("two", 0);
  EXPECT_EQ(s.where("short_too"), "running n0:0") << "nobody can ask it";
  EXPECT_EQ(s.where("large"), "waiting yield_pending");
  s.exited("short_too", 0);
  EXPECT_EQ(s.where("large"), "starting n0:0,1");
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Room, D6_IsLentToWhoCanBeAskedToLeave) {
  Script s = kept_pool();
  ASSERT_TRUE(s.submit(lasting("guest", hours(20))));
  EXPECT_EQ(s.where("guest"), "starting n0:0");
  s.started("guest");
  s.work(minutes(6));
  EXPECT_EQ(s.where("guest"), "running n0:0") << "it is not asked before the last tenant has left";
  s.exited("two", 0);
  EXPECT_EQ(s.where("guest"), "yielding n0:0") << "no protection holds for what is lent";
  EXPECT_EQ(s.task("guest").stop_reason, StopReason::preempted);
  s.checkpoint("guest");
  s.exited("guest", 75);
  EXPECT_EQ(s.where("large"), "starting n0:0,1");
  EXPECT_EQ(s.task("guest").preemptions, 1);
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Room, D6_ABorrowerThatOverrunsDoesNotHoldTheLenderUp) {
  Script s = kept_pool();
  ASSERT_TRUE(s.submit(staying("short", minutes(20))));
  s.started("short");
  s.exited("two", 0);
  s.work(minutes(15));
  EXPECT_EQ(s.where("large"), "waiting yield_pending");
  EXPECT_EQ(plan_of_large(s).lent_to.size(), 1U);
  s.work(hours(1));  // it does not end, and cannot be asked
  const auto plan = s.state.plans.find(s.task("large").id);
  EXPECT_TRUE(plan == s.state.plans.end() || plan->second.lent_to.empty())
      << "other room is looked for, as where any tenant stays longer than it said";
  s.node("n1", "d0", 2);
  EXPECT_EQ(s.where("large"), "starting n1:0,1");
}

TEST(Room, D2_NobodyIsAskedToLeaveWhatIsLentWhereThatIsOff) {
  Script s = kept_pool();
  ASSERT_TRUE(s.submit(lasting("short", minutes(40))));
  EXPECT_EQ(s.where("short"), "starting n0:0");
  s.started("short");
  s.spec.preempt.enabled = false;
  s.configure();
  s.exited("two", 0);
  s.work(hours(2));
  EXPECT_EQ(s.where("short"), "running n0:0");
}

TEST(Room, D6_IsNotLentWhereTheTimeIsTooShortToBeUseful) {
  Script s = kept_pool();
  s.work(minutes(40));
  ASSERT_TRUE(s.submit(lasting("guest", hours(20))));
  EXPECT_EQ(s.where("guest"), "waiting whole_devices");
}

TEST(Room, D6_ALoanGoesOnWhenTheRoomIsNoLongerKept) {
  Script s = kept_pool();
  ASSERT_TRUE(s.submit(lasting("guest", hours(20))));
  s.started("guest");
  ASSERT_TRUE(s.event(TaskCancelRequested{"large", "somebody"}));
  s.exited("two", 0);
  EXPECT_EQ(s.where("guest"), "running n0:0");
  EXPECT_FALSE(is_borrower(s.state, s.task("guest").id));
}

TEST(Room, D6_IsNotKeptBeforeItsTimeNorWhereThatIsOff) {
  for (const std::int32_t most : {4, 0}) {
    Script s;
    s.spec.reserve.most = most;
    s.spec.reserve.after = most == 0 ? minutes(10) : hours(50);
    s.configure();
    s.node("n0", "d0", 2);
    run(s, lasting("one", hours(1)));
    run(s, lasting("two", hours(2)));
    ASSERT_TRUE(s.submit(lasting("large", hours(1), 2)));
    s.work(hours(1));
    ASSERT_TRUE(s.submit(lasting("late", hours(1))));
    s.exited("one", 0);
    s.started("late");
    s.work(minutes(30));
    EXPECT_TRUE(s.state.plans.empty());
  }
}

TEST(Room, D1_AHeavierTaskTakesWhatIsKeptForALighterOne) {
  Script s = passed_pool();
  s.work(hours(1));
  ASSERT_TRUE(s.submit(lasting("late", hours(1))));
  s.exited("one", 0);
  s.started("late");
  s.work(minutes(2));
  s.exited("late", 0);
  ASSERT_TRUE(s.state.plans.contains(s.task("large").id));
  TaskSpec near = lasting("near", hours(1));
  near.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(near));
  EXPECT_EQ(s.where("near"), "starting n0:0");
  // What is left is kept for it again, later.
  s.started("near");
  s.work(minutes(3));
  EXPECT_TRUE(s.state.plans.contains(s.task("large").id));
}

TEST(Room, G4_APauseGivesItUp) {
  Script s = passed_pool();
  s.work(hours(1));
  ASSERT_TRUE(s.submit(lasting("late", hours(1))));
  s.exited("one", 0);
  s.started("late");
  s.work(minutes(2));
  ASSERT_FALSE(s.state.plans.empty());
  ASSERT_TRUE(s.event(PauseRequested{"operator", "test"}));
  EXPECT_TRUE(s.state.plans.empty());
  s.work(minutes(5));
  EXPECT_TRUE(s.state.plans.empty());
  ASSERT_TRUE(s.event(ResumeRequested{"operator"}));
  EXPECT_FALSE(s.state.plans.empty());
}

// ---- moves -----------------------------------------------------------------------------------

TEST(Move, C5_ThePlaceIsClaimedThenTheTaskYieldsAndGoesOnThere) {
  Script s = two_halves();
  ASSERT_TRUE(s.submit(Script::training("large")));
  EXPECT_EQ(s.where("large"), "waiting whole_devices");
  s.work(minutes(12));
  const std::string moved = mover(s), stays = moved == "a" ? "b" : "a";
  ASSERT_EQ(s.task(moved).phase, Phase::yielding);
  EXPECT_EQ(s.task(moved).stop_reason, StopReason::moved);
  const Plan& place = s.state.plans.at(s.task(moved).id);
  EXPECT_EQ(place.kind, PlanKind::move);
  EXPECT_EQ(place.for_task, s.task("large").id);
  EXPECT_EQ(place.slots.front().device, s.task(stays).slots.front().device);
  EXPECT_EQ(s.state.device(place.slots.front().device).held_share, MilliGpu(300));
  s.checkpoint(moved);
  s.exited(moved, 75);
  EXPECT_EQ(s.task(moved).phase, Phase::starting);
  EXPECT_EQ(s.task(moved).slots.front().device, s.task(stays).slots.front().device);
  EXPECT_EQ(s.task("large").phase, Phase::starting);
  EXPECT_EQ(s.task(moved).preemptions, 0) << "nobody took its devices";
  EXPECT_EQ(s.task(moved).preemptions_today, 1) << "what it may be asked for in a day is used";
}

TEST(Move, C5_WhenThePlaceIsLostItStays) {
  Script s = two_halves();
  ASSERT_TRUE(s.submit(Script::training("large")));
  s.work(minutes(12));
  const std::string moved = mover(s);
  const DeviceId place = s.state.plans.at(s.task(moved).id).slots.front().device;
  ASSERT_TRUE(s.event(
      DeviceHealthChanged{"n0", s.state.device(place).index, DeviceHealth::failed, "test"}));
  EXPECT_EQ(s.task(moved).phase, Phase::running);
  EXPECT_FALSE(s.state.plans.contains(s.task(moved).id));
}

TEST(Move, D3_NobodyIsMovedWhoIsNearlyDoneOrProtected) {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  TaskSpec a = share("a", 300), b = share("b", 300);
  a.work = hours(4) + minutes(13);  // 3 min are left when it could be asked: W <= R
  b.windows.push_back({Micros(0), hours(24) - microseconds(1)});
  run(s, a);
  run(s, share("filler", 700));
  run(s, b);
  s.exited("filler", 0);
  s.work(hours(4));
  ASSERT_TRUE(s.submit(Script::training("large")));
  s.work(minutes(12));
  EXPECT_EQ(s.task("a").phase, Phase::running);
  EXPECT_EQ(s.task("b").phase, Phase::running);
}

TEST(Move, C5_ASnapshotInTheMiddleGoesOn) {
  Script s = two_halves();
  ASSERT_TRUE(s.submit(Script::training("large")));
  s.work(minutes(12));
  const std::string moved = mover(s);
  auto copy = decode_snapshot(encode_snapshot(s.state));
  ASSERT_TRUE(copy);
  EXPECT_TRUE(index_is_current(*copy));
  s.state = std::move(*copy);
  s.checkpoint(moved);
  s.exited(moved, 75);
  EXPECT_EQ(s.task(moved).phase, Phase::starting);
  EXPECT_EQ(s.task("large").phase, Phase::starting);
}

// ---- low tide --------------------------------------------------------------------------------

TEST(Consolidation, C5_EmptiesADeviceWhenTheDemandOfLateLacksOne) {
  Script s;
  s.spec.reserve.most = 0;
  s.spec.defragment.quiet_below = Ppm(1'000'000);
  s.configure();
  s.node("n0", "d0", 2);
  s.node("n1", "d1", 1);
  run(s, share("a", 300));
  run(s, share("filler", 700));
  run(s, share("b", 300));
  run(s, share("filler-b", 700));
  run(s, share("c", 300));
  for (const char* name : {"filler", "filler-b"}) s.exited(name, 0);
  s.work(hours(4));
  EXPECT_EQ(s.state.index->models[0].free_whole[0], 0U);
  // Tasks of one device come and go; then the tide is low.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(s.submit(Script::training("whole-" + std::to_string(i))));
    ASSERT_TRUE(s.event(TaskCancelRequested{"whole-" + std::to_string(i), "test"}));
  }
  s.work(minutes(1));
  std::vector<std::string> moving;
  for (const char* name : {"a", "b", "c"}) {
    if (s.task(name).phase == Phase::yielding) moving.emplace_back(name);
  }
  ASSERT_FALSE(moving.empty());
  for (const std::string& name : moving) {
    s.checkpoint(name);
    s.exited(name, 75);
  }
  EXPECT_GE(s.state.index->models[0].free_whole[0], 1U);
}

TEST(Consolidation, C5_NobodyIsMovedWhereNothingIsLacking) {
  Script s = two_halves();
  s.work(hours(3));
  EXPECT_EQ(s.task("a").phase, Phase::running);
  EXPECT_EQ(s.task("b").phase, Phase::running);
  EXPECT_TRUE(s.state.plans.empty());
}

TEST(Consolidation, C5_GainHasToBeWorthOneAndAHalfTimesTheCost) {
  EXPECT_FALSE(is_worth(15, 10));
  EXPECT_FALSE(is_worth(0, 0));
  EXPECT_TRUE(is_worth(3'000'000, 1'000'000));
  EXPECT_FALSE(is_worth(1'400'000, 1'000'000));
  EXPECT_TRUE(is_worth(1'600'000, 1'000'000));
}

}  // namespace
}  // namespace neap::decider_room_test
