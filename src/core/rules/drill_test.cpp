// What a drill counts and what its checks say while it is under way (SPEC F12).
#include "core/rules/drill.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/rules/scale.h"
#include "core/rules/switching.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

DrillStarted burst_of(std::int32_t replicas, Micros pause = Micros(0)) {
  DrillStarted started;
  started.service = "chat";
  started.replicas = replicas;
  started.length = minutes(40);
  started.limits.ready_within = started.limits.resume_within = minutes(20);
  started.limits.pause = pause;
  started.by = "ann";
  return started;
}

// One replica, and two trainings on all other devices.
Script busy_pool(int guard = 0) {
  Script s;
  s.spec.inference_guard_min = guard;
  s.configure();
  s.node("n0", "d0", 3 + guard);
  EXPECT_TRUE(s.submit(Script::service("chat", 1, 4)));
  s.started("chat.0");
  s.healthy("chat.0");
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(1));
  return s;
}

void yield(Script& s, const char* name) {
  for (int i = 0; i < 20 && s.task(name).phase == Phase::running; ++i) s.work(minutes(1));
  ASSERT_EQ(s.task(name).phase, Phase::yielding);
  s.checkpoint(name);
  s.exited(name, 75);
}

void serve(Script& s, const char* name) {
  s.started(name);
  s.healthy(name);
}

const DrillCheck& check_of(const std::vector<DrillCheck>& checks, std::string_view begin) {
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const DrillCheck& check) {
    return check.name.starts_with(begin);
  });
  EXPECT_NE(found, checks.end()) << begin;
  return *found;
}

TEST(Drill, F12_WhatADrillBringsIsNoSwitch) {
  Script s = busy_pool();
  s.state.spec.scale.switch_budget = Ppm(100'000);
  const ServiceState& chat = s.state.services.front();
  const SwitchPrice before = price_of(s.state, chat);
  ASSERT_TRUE(s.event(burst_of(3)));
  yield(s, "a");
  yield(s, "b");
  serve(s, "chat.1");
  serve(s, "chat.2");
  const auto answers = [&](const char* name) {
    return s.event(RequestsServed{s.task(name).allocation, 10, 10, seconds(5)});
  };
  ASSERT_TRUE(answers("chat.1"));
  ASSERT_TRUE(s.event(DrillStopRequested{"ann"}));
  EXPECT_EQ(s.task("chat.1").stop_reason, StopReason::drill_over);
  s.pass(seconds(20));
  s.exited("chat.1", 0);
  s.exited("chat.2", 0);
  EXPECT_EQ(price_of(s.state, chat).loaded, before.loaded);
  EXPECT_EQ(price_of(s.state, chat).warmed, before.warmed);
  EXPECT_EQ(price_of(s.state, chat).left, before.left);
  EXPECT_EQ(chat.switches.given, 0);
  EXPECT_EQ(switches_of_day(chat, s.now), 0);
}

TEST(Drill, F12_ALimitIsOpenUntilItIsKeptOrBrokenForGood) {
  Script s = busy_pool();
  ASSERT_TRUE(s.event(burst_of(3, seconds(2))));
  s.pass(seconds(1));
  for (const DrillCheck& check : drill_checks(s.state.drill)) {
    const bool counted = check.name.starts_with("replicas placed");  // when the first was asked
    EXPECT_EQ(check.open, !counted || s.state.drill.victims.empty()) << check.name;
  }
  s.pass(seconds(10));
  auto checks = drill_checks(s.state.drill);
  EXPECT_FALSE(check_of(checks, "pause rehearsed").open) << "it is over";
  EXPECT_TRUE(check_of(checks, "pause rehearsed").kept);
  EXPECT_TRUE(check_of(checks, "replicas that served").open);
  DrillState broken = s.state.drill;
  broken.limits.preemptions = 0;
  broken.limits.lost = Micros(-1);
  broken.asked_in_pause = 1;
  checks = drill_checks(broken);
  for (const char* name : {"tasks preempted", "lost work", "asked to yield during"}) {
    EXPECT_FALSE(check_of(checks, name).open) << name;
    EXPECT_FALSE(check_of(checks, name).kept) << name;
  }
  yield(s, "a");
  ASSERT_TRUE(s.event(DrillStopRequested{"ann"}));
  ASSERT_EQ(s.state.drill.phase, DrillPhase::settling);
  checks = drill_checks(s.state.drill);
  EXPECT_FALSE(check_of(checks, "replicas that served").open) << "none can serve any more";
  EXPECT_FALSE(check_of(checks, "ran its time").open);
}

TEST(Drill, F12_WhoWasToldToStayIsCountedBesideThePreempted) {
  Script s = busy_pool();
  ASSERT_TRUE(s.event(burst_of(2)));
  for (int i = 0; i < 20 && s.state.drill.victims.empty(); ++i) s.work(minutes(1));
  ASSERT_EQ(s.state.drill.victims.size(), 1U);
  const std::string victim = s.state.tasks.at(s.state.drill.victims[0].task).spec.name;
  ASSERT_TRUE(s.event(DrillStopRequested{"ann"}).has_value());
  const auto stayed = drill_checks(s.state.drill);
  EXPECT_EQ(check_of(stayed, "tasks preempted").figure,
            "0: 0 yielded, 0 stopped; beside them 1 told to stay");
}

TEST(Drill, F12_YieldedRoomIsCountedWithoutAPlanToo) {
  Script s = busy_pool();
  ASSERT_TRUE(s.event(burst_of(2, seconds(2))));
  for (int i = 0; i < 40 && s.state.drill.victims.empty(); ++i) s.pass(milliseconds(500));
  ASSERT_FALSE(s.state.drill.victims.empty());
  const std::string victim = s.state.tasks.at(s.state.drill.victims[0].task).spec.name;
  for (int i = 0; i < 8 && !s.state.drill.victims[0].withdrawn; ++i) s.pass(milliseconds(100));
  ASSERT_TRUE(s.state.drill.victims[0].withdrawn) << "the pause told it to stay";
  s.checkpoint(victim);
  s.exited(victim, 75);  // it was under way
  s.pass(seconds(5));
  ASSERT_EQ(s.task("chat.1").phase, Phase::starting) << s.where("chat.1");
  const auto checks = drill_checks(s.state.drill);
  EXPECT_TRUE(check_of(checks, "replicas placed")
                  .figure.starts_with("0 free, 0 guard, 0 buffer, 1 yielded"))
      << check_of(checks, "replicas placed").figure;
  EXPECT_EQ(check_of(checks, "tasks preempted").figure,
            "1: 1 yielded, 0 stopped; beside them 0 told to stay");
}

}  // namespace
}  // namespace neap
