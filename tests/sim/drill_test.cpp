// A burst rehearsed on a whole site in virtual time: machines, tasks and a daemon that may crash.
// F12
#include <gtest/gtest.h>

#include "core/rules/drill.h"
#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

DrillStarted burst(std::int32_t replicas, std::int32_t preemptions) {
  DrillStarted started;
  started.service = "chat";
  started.replicas = replicas;
  started.length = minutes(45);
  started.limits.preemptions = preemptions;
  started.limits.ready_within = minutes(30);
  started.limits.resume_within = minutes(30);
  started.by = "operator";
  return started;
}

// Night: one replica, and training on all that is not the guard.
class Night {
 public:
  explicit Night(simulated::Behaviour behaviour = {}, Site::Options options = {})
      : stage(pool_with(3, 2), nodes_of(12, 4), options) {
    stage->submit(service_of("chat", 1, 9), constant(1));
    EXPECT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
    for (int i = 0; i < 9; ++i) {
      stage->submit(task_of(
          {.name = "job" + std::to_string(i), .length = hours(60), .behaviour = behaviour}));
    }
    EXPECT_TRUE(stage.wait_for([&] { return stage.holding("job") == 9; }));
    stage.run_for(hours(1));
  }

  [[nodiscard]] const DrillState& drill() const { return stage.state().drill; }
  [[nodiscard]] bool ends() {
    return stage.wait_for([&] { return drill().began.us > 0 && drill().phase == DrillPhase::none; },
                          hours(3));
  }
  [[nodiscard]] bool is_as_before() {
    return stage.wait_for(
        [&] {
          return stage.replicas("chat") == 1 && stage.holding("job") == 9 &&
                 !stage.state().pause.active && stage->service("chat")->spec.min_replicas == 1;
        },
        minutes(30));
  }
  [[nodiscard]] std::string verdict() const {
    std::string text = stage.state().last_drill.detail;
    for (const DrillCheck& check : drill_checks(drill())) {
      text += "\n" + std::string(check.kept ? "ok " : "FAILED ") + check.name + ": " +
              check.figure + " (" + check.limit + ")";
    }
    return text;
  }
  [[nodiscard]] std::int64_t placed_from(RoomSource source) const {
    return std::count_if(drill().placed.begin(), drill().placed.end(),
                         [&](const DrillReplica& r) { return r.source == source; });
  }

  Stage stage;
};

TEST(Drill, F12_ABurstIsServedFromTheGuardThenByYieldsAndAllResume) {
  Night night;
  night.stage->ask(burst(6, 4));
  ASSERT_TRUE(night.ends());
  EXPECT_TRUE(night.stage.state().last_drill.passed) << night.verdict();
  EXPECT_EQ(night.stage.state().last_drill.kind, "burst");
  EXPECT_EQ(night.placed_from(RoomSource::guard), 2) << night.verdict();
  EXPECT_EQ(night.placed_from(RoomSource::yielded), 3) << night.verdict();
  EXPECT_EQ(drill_preemptions(night.drill()), 3);
  EXPECT_EQ(drill_lost(night.drill()), Micros(0));
  EXPECT_EQ(night.drill().asked_in_pause, 0);
  EXPECT_GT(night.drill().asked_after_pause, 0) << "resume released it";
  EXPECT_TRUE(night.is_as_before());
  const DrillState& drill = night.drill();
  std::printf("simulated drill: %zu replicas, %d preempted, lost %lld us, paused for %lld us\n",
              drill.placed.size(), drill_preemptions(drill),
              static_cast<long long>(drill_lost(drill).value),
              static_cast<long long>((drill.resumed_at - drill.paused_at).value));
}

TEST(Drill, F12_AboveItsLimitItIsWithdrawnAndNobodyLeaves) {
  Night night;
  night.stage->ask(burst(6, 1));
  ASSERT_TRUE(night.ends());
  EXPECT_FALSE(night.stage.state().last_drill.passed);
  EXPECT_NE(night.drill().withdrawn.find("at most 1 may be"), std::string::npos) << night.verdict();
  EXPECT_LE(drill_preemptions(night.drill()), 1) << "who was asked was told to stay";
  EXPECT_LT(night.drill().settle_by - night.drill().limits.resume_within - night.drill().began,
            minutes(1))
      << "at once";
  EXPECT_TRUE(night.is_as_before());
}

TEST(Drill, F12_ItEndsByItselfWhenTheDaemonIsKilledMidway) {
  for (const Micros at : {seconds(1), seconds(3), minutes(5), minutes(46)}) {
    Night night;
    night.stage->ask(burst(6, 4));
    night.stage.run_for(at);
    night.stage->daemon().crash();
    ASSERT_TRUE(night.ends()) << at.value;
    EXPECT_TRUE(night.stage.state().last_drill.passed) << at.value << " " << night.verdict();
    EXPECT_TRUE(night.is_as_before()) << at.value;
  }
}

// in_the_state: as it is. by_its_command: planted, a drill that its command begins and ends, from
// outside; the command is killed half way.
enum class Kept : std::uint8_t { in_the_state, by_its_command };

// Reports are lost, late and doubled, and the daemon crashes at random, also while it writes.
bool ends_as_before(std::uint64_t seed, Kept kept) {
  Site::Options options;
  options.seed = seed;
  options.network = {.least = milliseconds(1),
                     .most = milliseconds(500),
                     .lost = Ppm(50'000),
                     .doubled = Ppm(50'000),
                     .late = Ppm(20'000),
                     .latest = seconds(10)};
  options.crashes.at_each_point = Ppm(1'000);
  Night night({}, options);
  const auto replicas = static_cast<std::int32_t>(3 + seed % 4);
  if (kept == Kept::by_its_command) {
    night.stage->ask(ServiceScaled{"chat", replicas, 9, "drill"});
    night.stage.run_for(minutes(75));
  } else {
    night.stage->ask(burst(replicas, 9));
    if (!night.ends()) return false;
  }
  const auto as_before = [&] {
    return night.stage.replicas("chat") == 1 && !night.stage.state().pause.active;
  };
  return night.stage.wait_for(as_before, minutes(2)) && night.is_as_before();
}

TEST(DrillProperty, F12_WhateverCrashesThePoolIsAsBefore) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    EXPECT_TRUE(ends_as_before(seed, Kept::in_the_state)) << "seed " << seed;
  }
}

TEST(DrillProperty, F12_ADrillThatItsCommandHasToEndIsNoticed) {
  EXPECT_FALSE(ends_as_before(1, Kept::by_its_command));
}

TEST(Drill, F12_ATaskThatDoesNotLeaveEndsItAndIsSaid) {
  simulated::Behaviour deaf;
  deaf.fault = simulated::Fault::ignores_yield;
  Night night(deaf);
  night.stage->ask(burst(6, 9));
  ASSERT_TRUE(night.ends());
  EXPECT_FALSE(night.stage.state().last_drill.passed);
  EXPECT_FALSE(night.drill().withdrawn.empty()) << night.verdict();
  EXPECT_NE(night.stage.state().last_drill.detail.find("did not leave in time"), std::string::npos)
      << night.verdict();
  EXPECT_TRUE(night.is_as_before());
}

TEST(Drill, F12_ARealPauseEndsIt) {
  Night night;
  night.stage->ask(burst(6, 4));
  night.stage.run_for(minutes(2));
  night.stage->ask(PauseRequested{"operator", "an incident"});
  night.stage.run_for(minutes(40));
  EXPECT_EQ(night.drill().phase, DrillPhase::settling);
  EXPECT_NE(night.drill().withdrawn.find("paused by operator"), std::string::npos);
  EXPECT_TRUE(night.stage.state().pause.active) << "a person's pause is not the drill's to end";
  night.stage->ask(ResumeRequested{"operator"});
  ASSERT_TRUE(night.ends());
  EXPECT_FALSE(night.stage.state().last_drill.passed);
  EXPECT_TRUE(night.is_as_before());
}

TEST(Drill, F12_ItIsStoppedWhenAsked) {
  Night night;
  night.stage->ask(burst(3, 4));
  night.stage.run_for(minutes(1));
  EXPECT_EQ(night.stage.replicas("chat"), 3);
  night.stage->ask(DrillStopRequested{"operator"});
  ASSERT_TRUE(night.ends());
  EXPECT_FALSE(night.stage.state().last_drill.passed);
  EXPECT_EQ(night.stage.replicas("chat"), 1) << "nobody yielded, and they left all the same";
  EXPECT_TRUE(night.is_as_before());
}

TEST(Drill, F12_WhatCannotBeRehearsedIsRefusedByField) {
  Night night;
  const auto refused = [&](DrillStarted started) -> std::string {
    const auto checked = check_event(night.stage.state(), started);
    return checked ? "" : to_string(checked.error());
  };
  DrillStarted wrong = burst(10, 4);
  EXPECT_NE(refused(wrong).find("replicas"), std::string::npos) << "more than it may have";
  wrong = burst(1, 4);
  EXPECT_NE(refused(wrong).find("replicas"), std::string::npos) << "what it has";
  wrong = burst(4, -1);
  EXPECT_NE(refused(wrong).find("max_preemptions"), std::string::npos);
  wrong = burst(4, 4);
  wrong.length = hours(25);
  EXPECT_NE(refused(wrong).find("for"), std::string::npos);
  wrong = burst(4, 4);
  wrong.limits.pause = wrong.length;
  EXPECT_NE(refused(wrong).find("pause"), std::string::npos);
  wrong = burst(4, 4);
  wrong.service = "nobody";
  EXPECT_NE(refused(wrong).find("nobody"), std::string::npos);
  EXPECT_EQ(refused(burst(4, 4)), "");
  night.stage->ask(burst(3, 4));
  night.stage.run_for(seconds(10));
  EXPECT_NE(refused(burst(4, 4)).find("under way"), std::string::npos);
}

}  // namespace
}  // namespace neap::sim
