// Teams (D6): who goes first, what a team may have, and who gives back what was borrowed.
#include "core/rules/teams.h"

#include <gtest/gtest.h>

#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap::teams_test {
namespace {

using testing::Script;

TaskSpec of_team(const std::string& team, const std::string& name, int gpus = 1) {
  TaskSpec task = Script::training(name, gpus);
  task.team = team;
  return task;
}

// One node of eight devices.
Script pool_with(std::vector<TeamSpec> teams) {
  Script s;
  s.spec.teams = std::move(teams);
  s.configure();
  s.node("n0", "d0", 8);
  return s;
}

void run(Script& s, const TaskSpec& task) {
  ASSERT_TRUE(s.submit(task));
  ASSERT_EQ(s.task(task.name).phase, Phase::starting) << s.where(task.name);
  s.started(task.name);
}

TEST(Teams, D6_WithoutTeamsNothingIsKeptAboutThem) {
  Script s = pool_with({});
  run(s, of_team("vision", "a", 2));
  EXPECT_EQ(s.state.index->teams, nullptr);
  EXPECT_TRUE(s.state.shapes.front().team.empty());
}

TEST(Teams, D6_FaultsNameTheTeamAndTheField) {
  const auto fault = [](std::vector<TeamSpec> teams) {
    PoolSpec spec;
    spec.total_gpus = 16;
    spec.inference_guard_min = 4;
    spec.teams = std::move(teams);
    std::string text;
    for (const TeamFault& found : faults_of_teams(spec)) {
      text += (text.empty() ? "" : "; ") + std::to_string(found.team) + " " + found.field + ": " +
              found.message;
    }
    return text;
  };
  EXPECT_EQ(fault({{"a", "x", 4, 3}, {"a", "y", 1}}),
            "0 parent: no team \"x\" is listed; expected one of this list; "
            "0 guarantee: 4 devices, more than its limit of 3 devices; "
            "1 name: \"a\" is the name of another team; "
            "1 parent: no team \"y\" is listed; expected one of this list");
  EXPECT_EQ(fault({{"a", "", 4}, {"b", "", 8}}), "");
  EXPECT_EQ(fault({{"a", "x", 4}}), "0 parent: no team \"x\" is listed; expected one of this list");
  EXPECT_EQ(fault({{"a", "b"}, {"b", "a"}}),
            "0 parent: \"a\" is above itself: a < b < ...; "
            "1 parent: \"b\" is above itself: b < a < ...");
  EXPECT_EQ(fault({{"a", "", 4}, {"a", "", 1}}), "1 name: \"a\" is the name of another team");
  EXPECT_EQ(fault({{"a", "", 4, 3}}), "0 guarantee: 4 devices, more than its limit of 3 devices");
  EXPECT_EQ(fault({{"a", "", 4}, {"b", "a", 3}, {"c", "a", 2}}),
            "2 guarantee: makes 5 devices guaranteed below \"a\", which is guaranteed 4");
  EXPECT_EQ(fault({{"a", "", 8}, {"b", "", 5}}),
            "1 guarantee: makes 13 devices guaranteed in all; total_gpus less inference_guard_min "
            "leaves 12");
  EXPECT_EQ(fault({{"a", "", 1, std::nullopt, 0}}), "0 weight: expected 1 or more");
}

TEST(Teams, D6_ALimitHoldsItsTeamAndNobodyElse) {
  Script s = pool_with({{"vision", "", 0, 3}});
  run(s, of_team("vision", "a", 2));
  ASSERT_TRUE(s.submit(of_team("vision", "b", 2)));
  EXPECT_EQ(s.where("b"), "waiting team_limit");
  EXPECT_EQ(explain_wait(s.state, s.task("b")),
            "needs 2 whole devices; team vision has 2 of the 3 devices that it may have at most: "
            "it waits until tasks of vision end");
  run(s, of_team("speech", "c", 4));  // of a later submission, and it is not held up
  run(s, of_team("vision", "d", 1));
  s.exited("a", 0);
  EXPECT_EQ(s.where("b"), "starting n0:0,1");
}

TEST(Teams, D6_ALimitCountsWhatChildrenHaveAndServices) {
  Script s = pool_with({{"lab", "", 0, 3}, {"vision", "lab"}, {"speech", "lab"}});
  ServiceSpec chat = Script::service("chat", 2, 2);
  chat.team = "vision";
  ASSERT_TRUE(s.submit(chat));
  run(s, of_team("speech", "a", 1));
  ASSERT_TRUE(s.submit(of_team("vision", "b", 1)));
  EXPECT_EQ(s.where("b"), "waiting team_limit");
  EXPECT_NE(explain_wait(s.state, s.task("b")).find("team lab has 3 of the 3"), std::string::npos);
}

TEST(Teams, D6_BelowItsGuaranteeATeamGoesFirst) {
  Script s = pool_with({{"vision", "", 4}, {"speech"}});
  run(s, of_team("speech", "all", 8));
  ASSERT_TRUE(s.submit(of_team("speech", "s1", 4)));
  s.pass(minutes(1));
  ASSERT_TRUE(s.submit(of_team("vision", "v1", 4)));  // protected: it cannot be asked yet
  s.exited("all", 0);
  EXPECT_EQ(s.where("v1"), "starting n0:0,1,2,3");
  EXPECT_EQ(s.where("s1"), "starting n0:4,5,6,7");
}

TEST(Teams, D6_ThenTheSmallerWeightedShareGoesFirst) {
  Script s = pool_with({{"big", "", 0, std::nullopt, 3}, {"small"}});
  run(s, of_team("big", "b0", 2));
  run(s, of_team("small", "s0", 1));
  run(s, of_team("other", "o", 5));
  ASSERT_TRUE(s.submit(of_team("small", "s1")));
  ASSERT_TRUE(s.submit(of_team("big", "b1")));
  ASSERT_TRUE(s.submit(of_team("big", "b2")));
  // 2/3 of big against 1 of small; then 3/3 against 1: the earlier deadline; then 3/3 against 2.
  s.exited("o", 0);
  EXPECT_LT(s.task("b1").allocation.value, s.task("s1").allocation.value);
  EXPECT_LT(s.task("s1").allocation.value, s.task("b2").allocation.value);
}

TEST(Teams, D6_TheTierComesBeforeTheTeam) {
  Script s = pool_with({{"vision", "", 8}});
  TaskSpec all = of_team("speech", "all", 8);
  all.tier = "train_deadline_near";
  run(s, all);
  ASSERT_TRUE(s.submit(of_team("vision", "v", 8)));
  TaskSpec near = of_team("speech", "near", 8);
  near.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(near));
  s.exited("all", 0);
  EXPECT_EQ(s.task("near").phase, Phase::starting);
}

TEST(Teams, D6_WhatWasBorrowedIsGivenBack) {
  Script s = pool_with({{"vision", "", 4}, {"speech", "", 2}});
  run(s, of_team("speech", "s1", 4));
  run(s, of_team("speech", "s2", 4));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(of_team("vision", "v1", 4)));
  // Of the tier of its victim, and all the same it has its guarantee back at the next boundary.
  EXPECT_EQ(s.where("v1"), "waiting yield_pending");
  const std::string victim = s.task("s1").phase == Phase::yielding ? "s1" : "s2";
  const std::string other = victim == "s1" ? "s2" : "s1";
  EXPECT_EQ(s.task(other).phase, Phase::running);
  s.work(minutes(10));
  s.exited(victim, 75);
  s.started("v1");
  EXPECT_EQ(s.task(victim).lost, Micros(0));
  // It has what it is guaranteed; for more it asks nobody, and neither is it asked.
  ASSERT_TRUE(s.submit(of_team("vision", "v2", 1)));
  EXPECT_EQ(s.where("v2"), "waiting whole_devices");
  s.work(hours(2));
  EXPECT_EQ(s.task("v1").phase, Phase::running);
  EXPECT_EQ(s.task(other).phase, Phase::running);
  EXPECT_EQ(s.task(victim).phase, Phase::waiting);
}

TEST(Teams, D6_NobodyTakesATeamsGuarantee) {
  Script s = pool_with({{"vision", "", 4}, {"speech", "", 4}});
  run(s, of_team("speech", "s1", 4));
  run(s, of_team("vision", "v1", 4));
  s.work(hours(1));
  TaskSpec near = of_team("other", "near", 2);
  near.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(near));
  EXPECT_EQ(s.where("near"), "waiting whole_devices") << "heavier, and yet not at their expense";
  TaskSpec own = of_team("vision", "own", 2);
  own.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(own));
  EXPECT_EQ(s.where("own"), "waiting yield_pending") << "what a team takes from itself is its own";
  EXPECT_EQ(s.task("v1").phase, Phase::yielding);
  ASSERT_TRUE(s.submit(Script::service("chat", 4, 4)));
  EXPECT_EQ(s.task("s1").phase, Phase::yielding) << "inference is not bound";
}

TEST(Teams, D6_AGuaranteeIsTakenFromAsManyAsItNeeds) {
  // The cheapest two would take speech below its guarantee; the other two would not.
  Script s = pool_with({{"vision", "", 2}, {"speech", "", 2}, {"other"}});
  for (const char* name : {"s1", "s2", "s3"}) run(s, of_team("speech", name, 1));
  for (const char* name : {"o1", "o2", "o3", "o4", "o5"}) run(s, of_team("other", name, 1));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(of_team("vision", "v", 2)));
  ASSERT_EQ(s.where("v"), "waiting yield_pending");
  int speech = 0;
  for (const Victim& victim : s.state.plans.at(s.task("v").id).victims) {
    speech += s.state.tasks.at(victim.task).spec.team == "speech" ? 1 : 0;
  }
  EXPECT_LE(speech, 1);
}

// Two of vision's tasks share the node; a third one, of the whole node, has been passed.
Script pool_with_room_kept(std::vector<TeamSpec> teams, const std::string& passed) {
  Script s = pool_with(std::move(teams));
  const auto lasting = [](TaskSpec task, Micros work) {
    task.work = work;
    return task;
  };
  run(s, lasting(of_team("vision", "a", 4), hours(1)));
  run(s, lasting(of_team("vision", "b", 4), hours(9)));
  EXPECT_TRUE(s.submit(lasting(of_team(passed, "large", 8), hours(9))));
  s.work(hours(1));
  EXPECT_TRUE(s.submit(lasting(of_team("vision", "late", 4), hours(9))));
  s.exited("a", 0);
  s.started("late");
  s.work(minutes(2));
  EXPECT_TRUE(s.state.index->reserved.contains(s.task("large").id));
  return s;
}

TEST(Teams, D6_RoomThatIsKeptGivesWayToAGuarantee) {
  Script s = pool_with_room_kept({{"speech", "", 2}}, "vision");
  s.work(minutes(30));
  ASSERT_TRUE(s.submit(of_team("other", "x")));
  EXPECT_EQ(s.where("x"), "waiting whole_devices") << "without a guarantee it waits its turn";
  ASSERT_TRUE(s.submit(of_team("speech", "own")));
  EXPECT_EQ(s.where("own"), "waiting yield_pending");
  EXPECT_FALSE(s.state.plans.contains(s.task("large").id));
}

TEST(Teams, F6_AGuaranteeThatKeepsOthersFromYieldingIsNamed) {
  Script s = pool_with({{"vision", "", 8}});
  run(s, of_team("vision", "a", 8));
  s.work(hours(4));
  TaskSpec near = of_team("other", "near");
  near.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(near));
  const std::string why = explain_wait(s.state, s.task("near"));
  EXPECT_NE(why.find("none is asked: 1 within the guarantee of its team"), std::string::npos)
      << why;
}

TEST(Teams, D6_RoomThatIsKeptForAGuaranteeStays) {
  Script s = pool_with_room_kept({{"speech", "", 4}, {"large", "", 4}}, "large");
  EXPECT_EQ(expected_of(s.state, s.state.index->teams->at(1)), 0) << "all of it is held by others";
  s.exited("late", 0);
  EXPECT_EQ(expected_of(s.state, s.state.index->teams->at(1)), 4'000);
  ASSERT_TRUE(s.submit(of_team("speech", "own", 2)));
  EXPECT_TRUE(s.state.index->reserved.contains(s.task("large").id));
}

TEST(Teams, D6_AChildTakesFromItsSiblingBeforeOthers) {
  Script s =
      pool_with({{"lab", "", 4}, {"vision", "lab", 2}, {"speech", "lab", 2}, {"other", "", 4}});
  run(s, of_team("speech", "s1", 2));
  run(s, of_team("speech", "s2", 2));
  run(s, of_team("other", "o1", 4));
  s.work(hours(1));
  ASSERT_TRUE(s.submit(of_team("vision", "v", 2)));
  ASSERT_EQ(s.where("v"), "waiting yield_pending");
  EXPECT_EQ(s.task("o1").phase, Phase::running) << "lab has all that it is guaranteed";
  EXPECT_TRUE(s.task("s1").phase == Phase::yielding || s.task("s2").phase == Phase::yielding);
}

TEST(Teams, D6_InteractiveTasksAreNeverAskedForAGuarantee) {
  Script s = pool_with({{"vision", "", 8}});
  TaskSpec talk = of_team("other", "talk", 8);
  talk.tier = "interactive";
  run(s, talk);
  s.work(hours(1));
  TaskSpec mine = of_team("vision", "mine", 8);
  mine.tier = "interactive";
  ASSERT_TRUE(s.submit(mine));
  EXPECT_EQ(s.task("talk").phase, Phase::running);
  EXPECT_EQ(s.where("mine"), "waiting whole_devices");
  EXPECT_NE(
      explain_wait(s.state, s.task("mine")).find("team vision has 0 of its 8 guaranteed devices"),
      std::string::npos)
      << explain_wait(s.state, s.task("mine"));
}

TEST(Teams, D6_TeamsMayChangeWhileTasksWaitAndRun) {
  Script s = pool_with({});
  run(s, of_team("vision", "a", 6));
  ASSERT_TRUE(s.submit(of_team("vision", "b", 4)));
  EXPECT_EQ(s.where("b"), "waiting whole_devices");
  s.spec.teams = {{"vision", "", 0, 8}};
  s.configure();
  EXPECT_EQ(s.where("b"), "waiting team_limit");
  EXPECT_TRUE(index_is_current(s.state));
  EXPECT_EQ(s.state.index->teams->at(0).all.held, 6'000);
  s.spec.teams.clear();
  s.configure();
  EXPECT_EQ(s.where("b"), "waiting whole_devices");
  s.exited("a", 0);
  EXPECT_EQ(s.task("b").phase, Phase::starting);
  EXPECT_TRUE(index_is_current(s.state));
}

}  // namespace
}  // namespace neap::teams_test
