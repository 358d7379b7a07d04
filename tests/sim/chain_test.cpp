// Pipelines and new versions of services on the simulator (SPEC D9, C4, S8), in good weather and
// with a daemon that crashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

StageSpec stage_of(const std::string& name, std::vector<std::int32_t> after, Job job) {
  StageSpec stage;
  stage.name = name;
  stage.after = std::move(after);
  job.name = "nightly." + name;
  stage.task = task_of(std::move(job));
  return stage;
}

// Trains for hours, evaluates, and deploys as a new version of `service` if the accuracy will do.
PipelineSpec nightly(const ServiceSpec& service, Micros training = hours(3)) {
  PipelineSpec spec;
  spec.name = "nightly";
  spec.team = "web";
  spec.stages.push_back(stage_of("train", {}, {.length = training, .devices = 2}));
  spec.stages.push_back(stage_of("evaluate", {0}, {.length = minutes(20)}));
  StageSpec& deploy = spec.stages.emplace_back();
  deploy.name = "deploy";
  deploy.after = {1};
  deploy.when = {{1, "accuracy", Comparison::at_least, 900'000}};
  deploy.service = service;
  return spec;
}

// What evaluate.py would write down, told before the end of the task as the daemon does.
void tell_accuracy(Stage& stage, std::int64_t millionths) {
  stage->daemon().tell_before(
      [millionths](const PoolState& state, const Event& event) -> std::optional<Event> {
        const auto* exited = std::get_if<TaskExited>(&event);
        if (exited == nullptr || exited->code != 0) return std::nullopt;
        const TaskState& task = state.tasks.at(state.index->allocations.at(exited->stamp.source));
        const PipelineState* pipeline = find_pipeline(state, task.pipeline);
        if (pipeline == nullptr || !metrics_are_asked(*pipeline, task.stage)) return std::nullopt;
        return MetricsRead{pipeline->id, task.stage, {{"accuracy", millionths}}, {}};
      });
}

StagePhase phase_of(const Stage& stage, std::size_t number) {
  const PipelineState* pipeline = find_pipeline(stage.state(), "nightly");
  return pipeline == nullptr ? StagePhase::waiting : pipeline->stages.at(number).phase;
}

bool has_ended(const Stage& stage) {
  const PipelineState* pipeline = find_pipeline(stage.state(), "nightly");
  return pipeline != nullptr && pipeline->ended != Time::never();
}

ServiceSpec version(const std::string& name, Micros load) {
  ServiceSpec service = service_of(name, 1, 1);
  simulated::Behaviour behaviour;
  behaviour.load = load;
  service.launch = launch_text(behaviour);
  return service;
}

// ---- S8 --------------------------------------------------------------------------------------

TEST(Scenario, S8_TheChainIsNotCutAndTheNewModelLoadsHot) {
  Stage stage(pool_with(0, 0), nodes_of(4, 4));
  tell_accuracy(stage, 930'000);
  stage->submit(version("chat", seconds(30)), constant(5));
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  const ServiceSpec next = version("chat", seconds(60));
  stage->ask(PipelineSubmitted{nightly(next)});
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("nightly.train"); }));
  stage.run_for(hours(2));  // beyond every protected window
  // A burst of another service of the tier in which the chain will serve: more than there is.
  stage->submit(service_of("burst", 4, 8), constant(80));
  std::int64_t least_ready = 1;
  const auto watch = [&] {
    if (stage->daemon().is_up()) least_ready = std::min(least_ready, stage.ready("chat"));
    return has_ended(stage);
  };
  ASSERT_TRUE(stage.wait_for(watch, hours(4)));
  EXPECT_EQ(phase_of(stage, 0), StagePhase::done);
  EXPECT_EQ(phase_of(stage, 1), StagePhase::done);
  EXPECT_EQ(phase_of(stage, 2), StagePhase::done);
  for (const char* name : {"nightly.train", "nightly.evaluate"}) {
    EXPECT_EQ(stage.task(name).preemptions, 0) << name;
    EXPECT_EQ(stage.task(name).lost, Micros(0)) << name;
  }
  // The next stage took its turn before those who waited for the very devices.
  EXPECT_EQ(stage.task("nightly.evaluate").waited, Micros(0));
  // The old version served until the new one was there.
  EXPECT_EQ(least_ready, 1);
  EXPECT_EQ(stage->service("chat")->spec.launch, next.launch);
  EXPECT_EQ(stage.ready("chat"), 1);
  EXPECT_TRUE(stage->service("chat")->rolled_back.empty());
  std::printf(
      "S8 simulated: %d preemptions of the chain, evaluate waited %lld us, never fewer "
      "than %lld replicas ready\n",
      stage.task("nightly.train").preemptions + stage.task("nightly.evaluate").preemptions,
      static_cast<long long>(stage.task("nightly.evaluate").waited.value),
      static_cast<long long>(least_ready));
  // And the burst has what the chain has left.
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("burst") == 3; }));
}

// The same training without a chain yields to the same burst: it is the chain that holds.
TEST(Scenario, S8_WithoutTheChainTheBurstTakesTheDevices) {
  Stage stage(pool_with(0, 0), nodes_of(4, 4));
  stage->submit(version("chat", seconds(30)), constant(5));
  stage->submit(task_of({.name = "train", .length = hours(3), .devices = 2}));
  ASSERT_TRUE(stage.wait_for([&] { return stage.runs("train"); }));
  stage.run_for(hours(2));
  stage->submit(service_of("burst", 4, 8), constant(80));
  ASSERT_TRUE(stage.wait_for([&] { return stage.task("train").preemptions == 1; }));
}

TEST(Scenario, S8_AModelThatIsNotGoodEnoughIsNotDeployed) {
  Stage stage(pool_with(0, 0), nodes_of(4, 4));
  tell_accuracy(stage, 899'999);
  const ServiceSpec first = version("chat", seconds(30));
  stage->submit(first, constant(5));
  stage->ask(PipelineSubmitted{nightly(version("chat", seconds(60)), minutes(30))});
  ASSERT_TRUE(stage.wait_for([&] { return has_ended(stage); }, hours(3)));
  EXPECT_EQ(phase_of(stage, 1), StagePhase::done);
  EXPECT_EQ(phase_of(stage, 2), StagePhase::stopped);
  EXPECT_EQ(stage->service("chat")->spec.launch, first.launch);
}

TEST(Scenario, S8_AModelThatDoesNotLoadIsRolledBackAndTheOldOneServes) {
  Stage stage(pool_with(0, 0), nodes_of(4, 4));
  tell_accuracy(stage, 950'000);
  const ServiceSpec first = version("chat", seconds(30));
  stage->submit(first, constant(5));
  ServiceSpec bad = version("chat", hours(10));  // it never gets healthy
  bad.start_timeout = minutes(5);
  stage->ask(PipelineSubmitted{nightly(bad, minutes(30))});
  std::int64_t least_ready = 1;
  ASSERT_TRUE(stage.wait_for([&] { return stage.ready("chat") == 1; }));
  const auto watch = [&] {
    least_ready = std::min(least_ready, stage.ready("chat"));
    return has_ended(stage);
  };
  ASSERT_TRUE(stage.wait_for(watch, hours(3)));
  EXPECT_EQ(phase_of(stage, 2), StagePhase::failed);
  EXPECT_EQ(least_ready, 1);
  EXPECT_EQ(stage->service("chat")->spec.launch, first.launch);
  EXPECT_TRUE(stage.has_condition("service_rolled_back"));
  ASSERT_TRUE(stage.wait_for([&] { return !stage->service("chat")->roll; }));
}

// ---- G3 --------------------------------------------------------------------------------------

// Killed at any point of a write, again and again: the chain goes on where it was, each stage runs
// once to its end, and the state is that of a replay (Stage checks it).
TEST(Chain, G3_CrashesOfTheDaemonCutNoChain) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Site::Options options;
    options.seed = seed;
    options.crashes.at_each_point = Ppm(8'000);
    Stage stage(pool_with(0, 0), nodes_of(4, 4), options);
    tell_accuracy(stage, 930'000);
    stage->submit(version("chat", seconds(30)), constant(5));
    const ServiceSpec next = version("chat", seconds(60));
    stage->ask(PipelineSubmitted{nightly(next, minutes(40))});
    ASSERT_TRUE(stage.wait_for([&] { return has_ended(stage); }, hours(6))) << "seed " << seed;
    for (std::size_t n = 0; n < 3; ++n) {
      EXPECT_EQ(phase_of(stage, n), StagePhase::done) << "seed " << seed << ", stage " << n;
    }
    EXPECT_EQ(stage->service("chat")->spec.launch, next.launch) << "seed " << seed;
    EXPECT_GT(stage->daemon().crashes(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace neap::sim
