#include "config/pipeline_file.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace neap::config::pipeline_file_test {
namespace {

const Submitter submitter{{1000, 1000, "ada"}, "/jobs/ada"};

const std::string good = R"(pipeline:
  name: nightly
  team: vision
  stages:
    - name: train
      task:
        command: [python3, train.py]
        gpus: 2
        checkpoint: {contract: sdk}
    - name: evaluate
      after: [train]
      task:
        command: [python3, evaluate.py]
        gpus: 1
        team: quality
        checkpoint: {contract: signals}
    - name: deploy
      after: [evaluate]
      when: {metric: accuracy, at_least: 0.9}
      service:
        name: chat
        command: [python3, serve.py]
        gpus: 1
)";

PipelineFile accepted(const std::string& text) {
  Problems problems("p.yaml");
  auto file = parse_submitted_file(text, submitter, problems);
  EXPECT_TRUE(file) << problems.text();
  if (!file || !std::holds_alternative<PipelineFile>(*file)) return {};
  return std::get<PipelineFile>(*file);
}

std::string refused(std::string from, const std::string& to) {
  std::string text = good;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  Problems problems("p.yaml");
  EXPECT_FALSE(parse_submitted_file(text, submitter, problems)) << text;
  return problems.text();
}

TEST(PipelineFile, ReadsStagesD9) {
  const PipelineSpec spec = accepted(good).to_spec();
  EXPECT_EQ(spec.name, "nightly");
  EXPECT_EQ(spec.owner.uid, 1000U);
  ASSERT_EQ(spec.stages.size(), 3U);
  EXPECT_EQ(spec.stages[0].task->name, "nightly.train");
  EXPECT_EQ(spec.stages[0].task->team, "vision");
  EXPECT_EQ(spec.stages[1].task->team, "quality");
  EXPECT_EQ(spec.stages[1].after, std::vector<std::int32_t>{0});
  EXPECT_EQ(spec.stages[2].service->name, "chat");
  ASSERT_EQ(spec.stages[2].when.size(), 1U);
  EXPECT_EQ(spec.stages[2].when[0].stage, 1);
  EXPECT_EQ(spec.stages[2].when[0].bound, 900'000);
  EXPECT_EQ(spec.stages[2].when[0].comparison, Comparison::at_least);
}

TEST(PipelineFile, TakesAListOfConditionsD9) {
  std::string text = good;
  const std::string one = "when: {metric: accuracy, at_least: 0.9}";
  text.replace(text.find(one), one.size(),
               "when: [{metric: a, at_least: -1.5, at_most: 2}, {stage: evaluate, metric: b, "
               "at_most: 0.000001}]");
  const PipelineFile file = accepted(text);
  ASSERT_EQ(file.stages.size(), 3U);
  const auto& when = file.stages[2].when;
  ASSERT_EQ(when.size(), 3U);
  EXPECT_EQ(when[0].bound, -1'500'000);
  EXPECT_EQ(when[1].comparison, Comparison::at_most);
  EXPECT_EQ(when[2].bound, 1);
}

TEST(PipelineFile, ATaskFileIsStillOneD9) {
  Problems problems("t.yaml");
  const auto file =
      parse_submitted_file("task: {name: a, command: [x], gpus: 1}", submitter, problems);
  ASSERT_TRUE(file) << problems.text();
  EXPECT_TRUE(std::holds_alternative<TaskFile>(*file));
}

TEST(PipelineFile, RefusesWhatDoesNotHangTogetherD9) {
  EXPECT_EQ(refused("after: [train]", "after: [deploy]"),
            "p.yaml:11: pipeline.stages[1].after: \"deploy\" is no stage that stands before this "
            "one");
  EXPECT_EQ(refused("name: evaluate", "name: train"),
            "p.yaml:10: pipeline.stages[1].name: two stages are called \"train\"\n"
            "p.yaml:18: pipeline.stages[2].after: \"evaluate\" is no stage that stands before this "
            "one\n"
            "p.yaml:19: pipeline.stages[2].when.stage: is missing; expected one of the stages of "
            "`after`, whose metric it is");
  EXPECT_NE(refused("at_least: 0.9", "at_least: 0.9e1").find("pipeline.stages[2].when.at_least"),
            std::string::npos);
  EXPECT_NE(refused("at_least: 0.9", "more: 1").find("is not a known field"), std::string::npos);
  EXPECT_NE(refused("{metric: accuracy, at_least: 0.9}", "{stage: train, metric: a, at_least: 1}")
                .find("\"train\" is not among the stages of `after`"),
            std::string::npos);
  EXPECT_NE(refused("name: train", "name: a.b").find("has a dot"), std::string::npos);
  EXPECT_NE(refused("gpus: 2", "gpus: 2\n        name: own").find("name: is not a known field"),
            std::string::npos);
  EXPECT_NE(refused("pipeline:\n", "task: {}\npipeline:\n").find("stands beside `pipeline:`"),
            std::string::npos);
  EXPECT_NE(refused("    - name: train", "    - 7\n    - name: train").find("stages[0]"),
            std::string::npos);
}

TEST(PipelineFile, NamesTheLineOfAFieldThatThePoolRefusesD9) {
  const PipelineFile file = accepted(good);
  const auto place = [&](const char* field) {
    const Problem problem = file.place_of(field);
    return std::to_string(problem.line) + ": " + problem.field;
  };
  EXPECT_EQ(place("stages[0].gpus"), "8: pipeline.stages[0].task.gpus");
  EXPECT_EQ(place("stages[1].after"), "11: pipeline.stages[1].after");
  EXPECT_EQ(place("stages[1].task"), "12: pipeline.stages[1].task");
  EXPECT_EQ(place("stages[2].name"), "21: pipeline.stages[2].service.name");
  EXPECT_EQ(place("stages[1]"), "10: pipeline.stages[1]");
  EXPECT_EQ(place("stages[9].gpus"), "2: pipeline.stages[9].gpus");
}

TEST(PipelineFile, FitsItsStagesToThePoolD9) {
  PoolSpec pool;
  pool.total_gpus = 1;
  pool.tiers = {{"infer", 100, Purpose::inference}, {"train", 40, Purpose::batch}};
  PipelineFile file = accepted(good);
  const auto fitted = fit_to_pool(pool, file);
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().context, "stages[0].gpus");
  pool.total_gpus = 2;
  file = accepted(good);
  ASSERT_TRUE(fit_to_pool(pool, file));
  EXPECT_EQ(file.to_spec().stages[2].service->tier, "infer");
}

}  // namespace
}  // namespace neap::config::pipeline_file_test
