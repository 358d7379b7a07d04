// For whom others are asked to yield, and in whose turn.
#include <gtest/gtest.h>

#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap::decider_preempt_test {
namespace {

using testing::Script;

// One device, with a training that may be asked from ten minutes on.
Script protected_for_ten_minutes() {
  Script s;
  s.spec.preempt.protect_min = minutes(10);
  s.configure();
  s.node("n0", "d0", 1);
  TaskSpec job = Script::training("job");
  job.contract.restore = seconds(10);
  EXPECT_TRUE(s.submit(job));
  s.started("job");
  s.work(minutes(10) - seconds(2));
  s.checkpoint("job");
  return s;
}

TEST(WhoIsAsked, D1_WhatMayBeAskedFromNowOnIsForTheHeavierFirst) {
  TaskSpec urgent = Script::training("urgent");
  urgent.tier = "train_deadline_near";
  Script alone = protected_for_ten_minutes();
  alone.pass(seconds(4));
  ASSERT_TRUE(alone.submit(urgent));
  EXPECT_EQ(alone.where("urgent"), "waiting yield_pending");

  Script s = protected_for_ten_minutes();
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  EXPECT_TRUE(s.state.plans.empty());
  s.pass(seconds(4));  // it looks again a second from now
  EXPECT_TRUE(s.state.plans.empty());
  ASSERT_TRUE(s.submit(urgent));
  EXPECT_EQ(s.where("chat.0"), "waiting yield_pending");
  EXPECT_NE(s.where("urgent"), "waiting yield_pending");
}

TEST(WhoIsAsked, D3_NobodyYieldsForAServiceThatCannotStart) {
  Script s;
  s.spec.preempt.protect_min = seconds(1);
  s.configure();
  s.node("n0", "d0", 1);
  ASSERT_TRUE(s.submit(Script::training("job")));
  s.started("job");
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 1)));
  int asked = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string replica = "chat." + std::to_string(asked);
    if (s.task("job").phase == Phase::yielding) {
      s.checkpoint("job");
      s.exited("job", 75);
      ASSERT_EQ(s.task(replica).phase, Phase::starting);
      s.exited(replica, 127);
      ++asked;
    }
    if (s.task("job").phase == Phase::starting) s.started("job");
    s.pass(minutes(1));
    s.checkpoint("job");
  }
  EXPECT_EQ(asked, s.spec.max_restarts);
  EXPECT_EQ(s.task("job").phase, Phase::running);
  EXPECT_NE(explain_wait(s.state, s.task("chat.3")).find("the last 3 starts of its service failed"),
            std::string::npos)
      << explain_wait(s.state, s.task("chat.3"));
  // Where there is room it goes on trying, and who has served is not one that cannot start.
  s.node("n1", "d1", 1);
  ASSERT_EQ(s.task("chat.3").phase, Phase::starting);
  s.started("chat.3");
  s.healthy("chat.3");
  EXPECT_EQ(s.state.services[0].failures, 0);
}

TEST(WhoIsAsked, D3_ReplicasThatDieTogetherAreOneFailure) {
  Script s;
  s.configure();
  s.node("n0", "d0", 4);
  ASSERT_TRUE(s.submit(Script::service("chat", 4, 4)));
  for (const char* replica : {"chat.0", "chat.1", "chat.2", "chat.3"}) {
    s.started(replica);
    s.healthy(replica);
  }
  for (const char* replica : {"chat.0", "chat.1", "chat.2", "chat.3"}) s.exited(replica, 0, 9);
  EXPECT_EQ(s.state.services[0].failures, 1);
}

}  // namespace
}  // namespace neap::decider_preempt_test
