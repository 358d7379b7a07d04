// A new version of a live service takes over replica by replica (SPEC C4, S8).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/model/pool_index.h"
#include "core/rules/roll.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

class RollTest : public ::testing::Test {
 protected:
  void serve(int devices, int replicas) {
    s.configure();
    s.node("n0", "a", devices);
    ServiceSpec first = Script::service("chat", replicas, std::max(replicas, 1));
    first.launch = "v1";
    ASSERT_TRUE(s.submit(first));
    for (int i = 0; i < replicas; ++i) bring_up(name(i));
  }
  Result<void> replace(const std::string& launch) {
    ServiceSpec next = service().spec;
    next.launch = launch;
    return s.event(ServiceReplaced{std::move(next), "ann"});
  }
  void scale(int min, int max) { ASSERT_TRUE(s.event(ServiceScaled{"chat", min, max, "ann"})); }
  static std::string name(int n) { return "chat." + std::to_string(n); }
  void bring_up(const std::string& replica) {
    s.started(replica);
    s.healthy(replica);
  }
  [[nodiscard]] const ServiceState& service() const {
    return s.state.service(*find_live_service(s.state, "chat"));
  }
  [[nodiscard]] int ready(const std::string& launch) const {
    int count = 0;
    for (const TaskId id : service().replicas) {
      const TaskState& task = s.state.tasks.at(id);
      count += task.ready && task.spec.launch == launch ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] int holding() const {
    int count = 0;
    for (const TaskId id : service().replicas) {
      count += holds_devices(s.state.tasks.at(id).phase) ? 1 : 0;
    }
    return count;
  }

  Script s;
};

TEST_F(RollTest, TheNewReplicaIsThereBeforeAnOldOneLeavesC4) {
  serve(3, 2);
  ASSERT_TRUE(replace("v2"));
  EXPECT_EQ(holding(), 3);  // the peak is held before the new one starts
  EXPECT_EQ(ready("v1"), 2);
  s.started("chat.2");
  EXPECT_EQ(ready("v1"), 2);
  s.healthy("chat.2");
  EXPECT_EQ(ready("v1") + ready("v2"), 2);
  EXPECT_EQ(s.where(name(1)).substr(0, 8), "stopping");
  EXPECT_EQ(s.task(name(1)).stop_reason, StopReason::replaced);
  EXPECT_EQ(holding(), 3);  // no second one until it has left
  s.exited(name(1), 0);
  bring_up("chat.3");
  s.exited(name(0), 0);
  EXPECT_EQ(ready("v2"), 2);
  EXPECT_EQ(ready("v1"), 0);
  EXPECT_FALSE(service().roll);
  EXPECT_TRUE(service().rolled_back.empty());
}

TEST_F(RollTest, WaitsForTheRoomOfBothWhileTheOldVersionServesC4) {
  serve(1, 1);
  ASSERT_TRUE(replace("v2"));
  EXPECT_EQ(s.where("chat.1"), "waiting whole_devices");
  s.pass(hours(1));
  EXPECT_EQ(ready("v1"), 1);
  s.node("n1", "a", 1);
  bring_up("chat.1");
  s.exited("chat.0", 0);
  EXPECT_EQ(ready("v2"), 1);
  EXPECT_FALSE(service().roll);
}

TEST_F(RollTest, AVersionThatDoesNotGetHealthyIsRolledBackC4) {
  serve(2, 1);
  ASSERT_TRUE(replace("bad"));
  s.started("chat.1");
  s.pass(service().spec.start_timeout);
  EXPECT_EQ(s.where("chat.1").substr(0, 8), "stopping");
  EXPECT_EQ(service().spec.launch, "v1");
  EXPECT_EQ(service().rolled_back, "chat.1 did not become healthy in its time");
  EXPECT_TRUE(s.state.conditions.contains("service_rolled_back"));
  EXPECT_EQ(ready("v1"), 1);
  s.exited("chat.1", 0, 15);
  EXPECT_FALSE(service().roll);
  EXPECT_EQ(holding(), 1);
  ASSERT_TRUE(replace("v3"));  // the next try is free, and clears the condition
  EXPECT_FALSE(s.state.conditions.contains("service_rolled_back"));
}

TEST_F(RollTest, AVersionThatCrashesHalfwayIsRolledBackInFullC4) {
  serve(3, 2);
  ASSERT_TRUE(replace("bad"));
  bring_up("chat.2");
  s.exited("chat.1", 0);  // an old one has left already
  s.started("chat.3");
  s.exited("chat.3", 1);
  EXPECT_EQ(service().spec.launch, "v1");
  EXPECT_EQ(ready("v1") + ready("bad"), 2);  // what serves goes on until the old one is back
  bring_up("chat.4");
  EXPECT_EQ(s.where("chat.2").substr(0, 8), "stopping");
  s.exited("chat.2", 0);
  EXPECT_EQ(ready("v1"), 2);
  EXPECT_FALSE(service().roll);
}

TEST_F(RollTest, ALostNodeIsNoFaultOfTheVersionC4) {
  serve(1, 1);
  s.node("n1", "b", 1);
  ASSERT_TRUE(replace("v2"));
  s.started("chat.1");
  ASSERT_TRUE(s.event(NodeLost{"n1"}));
  EXPECT_EQ(service().spec.launch, "v2");
  EXPECT_TRUE(service().rolled_back.empty());
}

TEST_F(RollTest, OnlyWhatIsOnesOwnAndThereIsReplacedC4) {
  serve(2, 1);
  ServiceSpec stranger = service().spec;
  stranger.owner.uid = 99;
  EXPECT_EQ(s.event(ServiceReplaced{stranger, "bob"}).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(s.event(ServiceReplaced{Script::service("none", 1, 1), "ann"}).error().code,
            ErrorCode::not_found);
}

TEST_F(RollTest, APauseStopsItWhereItIsG4) {
  serve(2, 1);
  ASSERT_TRUE(replace("v2"));
  ASSERT_TRUE(s.event(PauseRequested{"ann", "incident"}));
  bring_up("chat.1");
  EXPECT_EQ(ready("v1"), 1);
  ASSERT_TRUE(s.event(ResumeRequested{"ann"}));
  EXPECT_EQ(ready("v1"), 0);
}

TEST_F(RollTest, AServiceThatIsRemovedMeanwhileGoesAsAWholeC4) {
  serve(2, 1);
  ASSERT_TRUE(replace("v2"));
  s.started("chat.1");
  ASSERT_TRUE(s.event(ServiceRemoveRequested{"chat", "ann"}));
  EXPECT_EQ(s.where("chat.0").substr(0, 8), "stopping");
  EXPECT_EQ(s.where("chat.1").substr(0, 8), "stopping");
}

// Nothing serves that it could take over from, and nothing has tried it.
TEST_F(RollTest, AVersionOfAServiceWithoutReplicasIsUntriedUntilOneIsHealthyC4) {
  serve(2, 0);
  ASSERT_TRUE(replace("v2"));
  EXPECT_EQ(service().spec.launch, "v2");
  ASSERT_TRUE(service().roll);
  EXPECT_TRUE(is_untried(service()));
  EXPECT_EQ(holding(), 0);  // load alone starts one
  scale(1, 1);
  s.started("chat.0");
  EXPECT_TRUE(is_untried(service()));
  s.healthy("chat.0");
  EXPECT_FALSE(service().roll);
  EXPECT_EQ(ready("v2"), 1);
}

TEST_F(RollTest, AnUntriedVersionWhoseFirstReplicaFailsGoesBackC4) {
  serve(2, 0);
  ASSERT_TRUE(replace("bad"));
  scale(1, 2);
  s.started("chat.0");
  s.exited("chat.0", 1);
  EXPECT_EQ(service().spec.launch, "v1");
  EXPECT_EQ(service().rolled_back, "chat.0 exited with 1");
  EXPECT_TRUE(s.state.conditions.contains("service_rolled_back"));
  bring_up("chat.1");
  EXPECT_EQ(ready("v1"), 1);
  EXPECT_FALSE(service().roll);
}

TEST_F(RollTest, AnUntriedVersionIsSupersededC4) {
  serve(1, 0);
  ASSERT_TRUE(replace("v2"));
  scale(1, 1);
  s.started("chat.0");
  ASSERT_TRUE(replace("v3"));
  EXPECT_EQ(s.where("chat.0").substr(0, 8), "stopping");
  EXPECT_EQ(service().roll->before.launch, "v1");
  EXPECT_TRUE(is_untried(service()));
  s.exited("chat.0", 0, 15);
  bring_up("chat.1");
  EXPECT_EQ(ready("v3"), 1);
}

// What does not come up may be for ever: a newer version takes its place, and falls back to the
// last that served.
TEST_F(RollTest, ANewerVersionSupersedesOneThatIsBeingLoadedC4) {
  serve(2, 1);
  ASSERT_TRUE(replace("v2"));
  s.started("chat.1");
  ASSERT_TRUE(replace("v3"));
  EXPECT_EQ(s.where("chat.1").substr(0, 8), "stopping");
  EXPECT_EQ(holding(), 2);  // never more than one beside the old ones
  EXPECT_EQ(ready("v1"), 1);
  s.exited("chat.1", 0, 15);
  s.started("chat.2");
  s.exited("chat.2", 1);
  EXPECT_EQ(service().spec.launch, "v1");
  EXPECT_EQ(service().rolled_back, "chat.2 exited with 1");
  EXPECT_EQ(ready("v1"), 1);
}

TEST_F(RollTest, AVersionWithoutRoomIsGivenUpForTheOneBeforeC4) {
  serve(1, 1);
  const ServiceSpec before = service().spec;
  ASSERT_TRUE(replace("v2"));
  EXPECT_EQ(s.where("chat.1"), "waiting whole_devices");
  ASSERT_TRUE(s.event(ServiceReplaced{before, "ann"}));
  EXPECT_NE(s.where("chat.1").substr(0, 7), "waiting");
  EXPECT_EQ(ready("v1"), 1);
  EXPECT_EQ(service().rolled_back, "ann took it back");
  EXPECT_FALSE(service().roll);
}

TEST_F(RollTest, ASupersededStageFailsS8) {
  serve(2, 1);
  PipelineSpec spec;
  spec.name = "p";
  StageSpec& deploy = spec.stages.emplace_back();
  deploy.name = "deploy";
  deploy.service = service().spec;
  deploy.service->launch = "v2";
  ASSERT_TRUE(s.event(PipelineSubmitted{spec}));
  ASSERT_TRUE(replace("v3"));
  const StageState& stage = find_pipeline(s.state, "p")->stages[0];
  EXPECT_EQ(stage.phase, StagePhase::failed);
  EXPECT_EQ(stage.detail, "another version, submitted by ann, came after");
}

// Its version comes next; where the service is removed instead, it is a new one.
TEST_F(RollTest, AStageWaitsForAnotherVersionToBeThereS8) {
  for (const bool removed : {false, true}) {
    s = Script();
    serve(2, 1);
    ASSERT_TRUE(replace("v2"));
    PipelineSpec spec;
    spec.name = "p";
    StageSpec& deploy = spec.stages.emplace_back();
    deploy.name = "deploy";
    deploy.service = service().spec;
    deploy.service->launch = "v3";
    ASSERT_TRUE(s.event(PipelineSubmitted{spec}));
    EXPECT_EQ(find_pipeline(s.state, "p")->stages[0].phase, StagePhase::waiting);
    if (removed) {
      ASSERT_TRUE(s.event(ServiceRemoveRequested{"chat", "ann"}));
    } else {
      bring_up("chat.1");
      s.exited("chat.0", 0);
      s.pass(seconds(1));
    }
    EXPECT_EQ(find_pipeline(s.state, "p")->stages[0].phase, StagePhase::running);
    EXPECT_EQ(service().spec.launch, "v3");
  }
}

TEST_F(RollTest, TheDeployingStageFailsWhenItsVersionIsRolledBackS8) {
  serve(3, 1);
  PipelineSpec spec;
  spec.name = "p";
  StageSpec& train = spec.stages.emplace_back();
  train.name = "train";
  train.task = Script::training("p.train");
  StageSpec& deploy = spec.stages.emplace_back();
  deploy.name = "deploy";
  deploy.after = {0};
  deploy.service = service().spec;
  deploy.service->launch = "bad";
  ASSERT_TRUE(s.event(PipelineSubmitted{spec}));
  s.started("p.train");
  s.exited("p.train", 0);
  s.started("chat.1");
  s.exited("chat.1", 1);
  s.pass(seconds(1));
  const PipelineState& pipeline = *find_pipeline(s.state, "p");
  EXPECT_EQ(pipeline.stages[1].phase, StagePhase::failed);
  EXPECT_EQ(pipeline.stages[1].detail, "rolled back: chat.1 exited with 1");
  EXPECT_EQ(ready("v1"), 1);
}

}  // namespace
}  // namespace neap
