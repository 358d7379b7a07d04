// Pipelines (SPEC D9): stages follow one another, conditions hold or stop what follows, and the
// stages of one are a priority group (S8).
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

StageSpec stage(const std::string& name, std::vector<std::int32_t> after, int gpus = 1) {
  StageSpec out;
  out.name = name;
  out.after = std::move(after);
  out.task = Script::training("p." + name, gpus);
  return out;
}

StageSpec deployment(const std::string& service, std::vector<std::int32_t> after) {
  StageSpec out;
  out.name = "deploy";
  out.after = std::move(after);
  out.service = Script::service(service, 1, 1);
  return out;
}

// train -> evaluate -> deploy, if the accuracy is 0.9 or more.
PipelineSpec train_to_deploy() {
  PipelineSpec spec;
  spec.name = "p";
  spec.stages = {stage("train", {}), stage("evaluate", {0}), deployment("chat", {1})};
  spec.stages[2].when = {{1, "accuracy", Comparison::at_least, 900'000}};
  return spec;
}

class Chain : public ::testing::Test {
 protected:
  void open(int devices) {
    s.configure();
    s.node("n0", "a", devices);
  }
  Result<void> submit(PipelineSpec spec) { return s.event(PipelineSubmitted{std::move(spec)}); }
  void run(const std::string& task) {
    ASSERT_TRUE(s.where(task).starts_with("starting")) << task << ": " << s.where(task);
    s.started(task);
  }
  void finish(const std::string& task) {
    run(task);
    s.exited(task, 0);
  }
  void tell_accuracy(std::int64_t millionths) {
    ASSERT_TRUE(s.event(MetricsRead{PipelineId(0), 1, {{"accuracy", millionths}}, {}}));
  }
  [[nodiscard]] const PipelineState& pipeline() const { return *find_pipeline(s.state, "p"); }
  [[nodiscard]] StagePhase phase(int n) const {
    return pipeline().stages[static_cast<std::size_t>(n)].phase;
  }
  [[nodiscard]] std::string detail(int n) const {
    return pipeline().stages[static_cast<std::size_t>(n)].detail;
  }

  Script s;
};

TEST_F(Chain, StagesEnterOneAfterTheOtherD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_EQ(s.where("p.evaluate"), "waiting stage");
  EXPECT_EQ(explain_wait(s.state, s.task("p.evaluate")),
            "waits for stage train (running) of pipeline p");
  finish("p.train");
  EXPECT_EQ(phase(0), StagePhase::done);
  finish("p.evaluate");
  EXPECT_EQ(phase(1), StagePhase::reading);
  tell_accuracy(912'300);
  ASSERT_TRUE(find_live_service(s.state, "chat"));
  EXPECT_EQ(phase(2), StagePhase::running);
  run("chat.0");
  s.healthy("chat.0");
  EXPECT_EQ(phase(2), StagePhase::done);
  EXPECT_NE(pipeline().ended, Time::never());
}

TEST_F(Chain, ArtefactsOfAStageAreTheInputsOfTheNextD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_EQ(s.task("p.train").spec.artifacts.own, "0/train");
  const Artifacts& evaluate = s.task("p.evaluate").spec.artifacts;
  EXPECT_EQ(evaluate.own, "0/evaluate");
  ASSERT_EQ(evaluate.inputs.size(), 1U);
  EXPECT_EQ(evaluate.inputs[0].stage, "train");
  EXPECT_EQ(evaluate.inputs[0].directory, "0/train");
  finish("p.train");
  finish("p.evaluate");
  tell_accuracy(900'000);
  EXPECT_EQ(s.task("chat.0").spec.artifacts.inputs.at(0).directory, "0/evaluate");
  EXPECT_EQ(s.task("chat.0").spec.artifacts.own, "");
}

TEST_F(Chain, AConditionThatDoesNotHoldStopsWhatFollowsD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  finish("p.train");
  finish("p.evaluate");
  tell_accuracy(899'999);
  EXPECT_EQ(phase(1), StagePhase::done);
  EXPECT_EQ(phase(2), StagePhase::stopped);
  EXPECT_EQ(detail(2),
            "chain_stopped: accuracy of stage evaluate is 0.899999, asked for is at least 0.9");
  EXPECT_FALSE(find_live_service(s.state, "chat"));
  EXPECT_NE(pipeline().ended, Time::never());
}

TEST_F(Chain, MetricsThatCannotBeReadStopWhatFollowsWithTheReasonD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  finish("p.train");
  finish("p.evaluate");
  ASSERT_TRUE(s.event(MetricsRead{PipelineId(0), 1, {}, "there is no metrics.json"}));
  EXPECT_EQ(detail(2),
            "chain_stopped: accuracy of stage evaluate is not known: there is no metrics.json");
}

TEST_F(Chain, AFailedStageStopsWhatFollowsAndNothingElseD9) {
  open(4);
  PipelineSpec spec = train_to_deploy();
  spec.stages.push_back(stage("report", {0}));
  spec.stages.back().name = "report";
  ASSERT_TRUE(submit(spec));
  finish("p.train");
  run("p.evaluate");
  run("p.report");
  s.exited("p.evaluate", 1);
  EXPECT_EQ(phase(1), StagePhase::failed);
  EXPECT_EQ(detail(1), "failed: exited with 1");
  EXPECT_EQ(detail(2), "chain_stopped: stage evaluate failed");
  EXPECT_EQ(s.where("p.report").substr(0, 7), "running");
  s.exited("p.report", 0);
  EXPECT_EQ(phase(3), StagePhase::done);
  EXPECT_NE(pipeline().ended, Time::never());
}

TEST_F(Chain, IsCancelledAsOneD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  ASSERT_TRUE(s.event(PipelineCancelRequested{"p", "ann"}));
  EXPECT_EQ(s.where("p.evaluate"), "cancelled");
  EXPECT_EQ(s.task("p.evaluate").detail, "chain_stopped: pipeline cancelled by ann");
  EXPECT_EQ(s.where("p.train").substr(0, 8), "stopping");
  s.exited("p.train", 0, 15);
  EXPECT_EQ(phase(0), StagePhase::stopped);
  EXPECT_EQ(phase(2), StagePhase::stopped);
  EXPECT_NE(pipeline().ended, Time::never());
  EXPECT_EQ(s.event(PipelineCancelRequested{"p", "ann"}).error().code, ErrorCode::conflict);
  ASSERT_TRUE(submit(train_to_deploy()));  // its name is free again
}

TEST_F(Chain, IsTakenAsAWholeOrNotAtAllD9) {
  open(2);
  const auto refused = [&](PipelineSpec spec) {
    const auto taken = submit(std::move(spec));
    EXPECT_FALSE(taken);
    EXPECT_EQ(s.state.tasks.size(), 0U);
    EXPECT_TRUE(s.state.pipelines.empty());
    return taken ? "" : taken.error().context;
  };
  PipelineSpec no_contract = train_to_deploy();
  no_contract.stages[1].task->contract = {};
  EXPECT_EQ(refused(no_contract), "stages[1].task");
  PipelineSpec too_large = train_to_deploy();
  too_large.stages[1].task->request.count = 64;
  EXPECT_EQ(refused(too_large), "stages[1].gpus");
  PipelineSpec backwards = train_to_deploy();
  backwards.stages[0].after = {1};
  EXPECT_EQ(refused(backwards), "stages[0].after");
  PipelineSpec after_service = train_to_deploy();
  after_service.stages.push_back(stage("more", {2}));
  EXPECT_EQ(refused(after_service), "stages[3].after");
  PipelineSpec twice = train_to_deploy();
  twice.stages[1].name = "train";
  EXPECT_EQ(refused(twice), "stages[1].name");
  PipelineSpec stranger = train_to_deploy();
  stranger.stages[2].when[0].stage = 0;
  EXPECT_EQ(refused(stranger), "stages[2].when");
  PipelineSpec others = train_to_deploy();
  others.owner.uid = 7;
  EXPECT_EQ(refused(others), "stages[0]");
  PipelineSpec none = train_to_deploy();
  none.stages.clear();
  EXPECT_EQ(refused(none), "stages");
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_EQ(submit(train_to_deploy()).error().code, ErrorCode::conflict);  // the name lives
}

TEST_F(Chain, ASecondReportOfMetricsIsRefusedD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_FALSE(s.event(MetricsRead{PipelineId(0), 1, {}, {}}));  // it has not entered yet
  finish("p.train");
  finish("p.evaluate");
  tell_accuracy(900'000);
  EXPECT_FALSE(s.event(MetricsRead{PipelineId(0), 1, {}, {}}));
  EXPECT_FALSE(s.event(MetricsRead{PipelineId(0), 99, {}, {}}));
  EXPECT_FALSE(s.event(MetricsRead{PipelineId(8), 1, {}, {}}));
}

// ---- the priority group ----------------------------------------------------------------------

TEST_F(Chain, ALaterStageGoesBeforeItsTierOutsideS8) {
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.pass(minutes(1));
  ASSERT_TRUE(s.submit(Script::training("other")));
  s.pass(minutes(30));
  s.exited("p.train", 0);
  EXPECT_EQ(s.where("p.evaluate").substr(0, 8), "starting");
  EXPECT_EQ(s.where("other"), "waiting whole_devices");
  // What it waited for stages is not waiting for devices.
  EXPECT_EQ(s.task("p.evaluate").waited, Micros(0));
}

TEST_F(Chain, WhoWasDueBeforeTheChainWasSubmittedGoesBeforeItD9) {
  open(1);
  ASSERT_TRUE(s.submit(Script::training("holder")));
  run("holder");
  ASSERT_TRUE(s.submit(Script::training("overdue")));
  s.pass(hours(5));  // longer than a batch task is to wait
  ASSERT_TRUE(submit(train_to_deploy()));
  s.exited("holder", 0);
  finish("overdue");
  ASSERT_TRUE(s.submit(Script::training("late")));
  finish("p.train");
  EXPECT_EQ(s.where("p.evaluate").substr(0, 8), "starting");
}

// One device, a burst of another service of the tier that the chain will serve in.
TEST_F(Chain, ABurstOfTheTierOfItsHeaviestStageDoesNotCutItS8) {
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(2));  // beyond the protected window
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(10));
  EXPECT_EQ(s.where("p.train").substr(0, 7), "running");
  EXPECT_EQ(s.where("burst.0"), "waiting whole_devices");
  EXPECT_EQ(s.task("p.train").preemptions, 0);
}

// Nor what a stage leaves: a burst that waits for it would be its end.
TEST_F(Chain, WhatAStageLeavesIsForTheNextOneS8) {
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(2));
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(30));
  s.exited("p.train", 0);
  EXPECT_EQ(s.where("p.evaluate").substr(0, 8), "starting");
  s.started("p.evaluate");
  tell_accuracy(950'000);  // just before its end is told
  s.exited("p.evaluate", 0);
  EXPECT_EQ(s.where("chat.0").substr(0, 8), "starting");
  EXPECT_EQ(s.where("burst.0"), "waiting whole_devices");
}

// What is kept for those who waited long is not what a pipeline will leave.
TEST_F(Chain, NoRoomIsKeptForOthersWhereItRunsD9) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  TaskSpec wide = Script::training("wide", 2);
  wide.work = hours(1);
  run("p.train");
  ASSERT_TRUE(s.submit(wide));
  s.work(minutes(5));
  for (int i = 0; i < 6; ++i) {  // passed by others, again and again
    const std::string small = "small" + std::to_string(i);
    ASSERT_TRUE(s.submit(Script::training(small)));
    finish(small);
    s.work(minutes(10));
  }
  EXPECT_TRUE(s.state.plans.empty());
  s.exited("p.train", 0);
  EXPECT_EQ(s.where("p.evaluate").substr(0, 8), "starting");
}

TEST_F(Chain, WithoutAChainTheSameTaskYieldsS8) {
  open(1);
  PipelineSpec alone = train_to_deploy();
  alone.stages.resize(1);  // its heaviest stage is its own
  ASSERT_TRUE(submit(alone));
  run("p.train");
  s.work(hours(2));
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(1));
  EXPECT_EQ(s.where("p.train").substr(0, 8), "yielding");
}

TEST_F(Chain, AHeavierTierThanItsHeaviestStageTakesItsDevicesD9) {
  s.spec.tiers.insert(s.spec.tiers.begin(), {"infer_urgent", 200, Purpose::inference});
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(2));
  ServiceSpec urgent = Script::service("urgent", 1, 1);
  urgent.tier = "infer_urgent";
  ASSERT_TRUE(s.submit(urgent));
  EXPECT_EQ(s.where("p.train").substr(0, 8), "yielding");
}

TEST_F(Chain, IsProtectedForItsTimeAndNoLongerD9) {
  s.spec.preempt.chain_protect = hours(3);
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(2));
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(30));
  EXPECT_EQ(s.where("p.train").substr(0, 7), "running");
  s.work(minutes(40));
  EXPECT_EQ(s.where("p.train").substr(0, 8), "yielding");
}

// The next stage has its own time, however long the one before it ran.
TEST_F(Chain, EachStageIsProtectedFromItsOwnStartS8) {
  s.spec.preempt.chain_protect = hours(4);
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(5));
  s.exited("p.train", 0);
  run("p.evaluate");
  s.work(hours(1));
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(10));
  EXPECT_EQ(s.where("p.evaluate").substr(0, 7), "running");
}

TEST_F(Chain, ALongTrainingOfAChainYieldsToInferenceS3) {
  s.spec.preempt.chain_protect = hours(4);
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  run("p.train");
  s.work(hours(5));
  ASSERT_TRUE(s.submit(Script::service("burst", 1, 1)));
  s.work(minutes(1));
  EXPECT_EQ(s.where("p.train").substr(0, 8), "yielding");
}

// Where others may ask for the devices at any time, a chain would be cut: it is not placed there.
TEST_F(Chain, IsNotPlacedOnLendableDevicesD9) {
  s.spec.elastic_buffer = 1;
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_EQ(s.where("p.train"), "waiting buffer");
  s.node("n1", "a", 1);
  EXPECT_EQ(s.where("p.train").substr(0, 8), "starting");
}

TEST_F(Chain, APoolThatGivesNoProtectionLendsToItAsToAllD9) {
  s.spec.elastic_buffer = 1;
  s.spec.preempt.chain_protect = Micros(0);
  open(1);
  ASSERT_TRUE(submit(train_to_deploy()));
  EXPECT_EQ(s.where("p.train").substr(0, 8), "starting");
}

// ---- what is kept ----------------------------------------------------------------------------

TEST_F(Chain, ASnapshotHoldsAllOfItG3) {
  open(2);
  ASSERT_TRUE(submit(train_to_deploy()));
  finish("p.train");
  finish("p.evaluate");
  auto copy = decode_snapshot(encode_snapshot(s.state));
  ASSERT_TRUE(copy);
  EXPECT_EQ(hash_of(*copy), hash_of(s.state));
  StepResult result;
  step(*copy, s.now, MetricsRead{PipelineId(0), 1, {{"accuracy", 950'000}}, {}}, result);
  EXPECT_TRUE(find_live_service(*copy, "chat"));
}

TEST_F(Chain, ATierThatAStageWillNeedStaysD9) {
  s.spec.tiers.push_back({"infer_low", 10, Purpose::inference});
  open(2);
  PipelineSpec spec = train_to_deploy();
  spec.stages[2].service->tier = "infer_low";
  ASSERT_TRUE(submit(spec));
  PoolSpec without = s.spec;
  without.tiers.pop_back();
  EXPECT_EQ(s.event(PoolConfigured{without}).error().code, ErrorCode::conflict);
}

TEST(Metrics, AreShownAsNumbersD9) {
  EXPECT_EQ(metric_text(0), "0");
  EXPECT_EQ(metric_text(900'000), "0.9");
  EXPECT_EQ(metric_text(-12'345'678), "-12.345678");
  EXPECT_EQ(metric_text(3'000'000), "3");
}

}  // namespace
}  // namespace neap
