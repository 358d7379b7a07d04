// What a stage wrote down about its result (SPEC D9): numbers as written, and nothing that could
// hurt whoever reads it (G5).
#include "daemon/stage_metrics.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace neap::daemon {
namespace {

std::int64_t value_of(const std::string& number) {
  const auto metrics = parse_metrics("{\"a\": " + number + "}");
  EXPECT_TRUE(metrics) << number;
  return metrics && metrics->size() == 1 ? metrics->front().value : -1;
}

std::string fault_of(const std::string& text) {
  const auto metrics = parse_metrics(text);
  EXPECT_FALSE(metrics) << text;
  return metrics ? "" : metrics.error().message;
}

TEST(StageMetrics, NumbersAreTakenAsWrittenD9) {
  EXPECT_EQ(value_of("0.9"), 900'000);
  EXPECT_EQ(value_of("1"), 1'000'000);
  EXPECT_EQ(value_of("-2.5"), -2'500'000);
  EXPECT_EQ(value_of("9.12e-1"), 912'000);
  EXPECT_EQ(value_of("12E+2"), 1'200'000'000);
  EXPECT_EQ(value_of("0.8999999999"), 899'999);  // not at least 0.9
  EXPECT_EQ(value_of("-0.8999999"), -900'000);
  EXPECT_EQ(value_of("0.8999994"), 899'999);
  EXPECT_EQ(value_of("0.0000004"), 0);
  EXPECT_EQ(value_of("0.0000005"), 0);
  EXPECT_EQ(value_of("-0.0000005"), -1);
  EXPECT_EQ(value_of("1e-400"), 0);
  EXPECT_EQ(value_of("0e400"), 0);
  EXPECT_EQ(value_of("1e-9223372036854775807"), 0);
  EXPECT_EQ(value_of("999999999999"), 999'999'999'999'000'000);
}

// What is above the bound is not at most it, by however little.
TEST(StageMetrics, NothingIsRoundedOverABoundD9) {
  const UpperBounds at_most{{"loss", 100'000}};
  const auto loss = [&](const std::string& number) {
    return parse_metrics("{\"loss\": " + number + "}", at_most)->front().value;
  };
  EXPECT_EQ(loss("0.1"), 100'000);
  EXPECT_EQ(loss("0.1000000"), 100'000);
  EXPECT_EQ(loss("0.10000000001"), 100'001);
  EXPECT_EQ(loss("0.0999999999"), 99'999);
}

TEST(StageMetrics, AreSortedAndOnlyNumbersOfTheOutermostObjectD9) {
  const auto metrics =
      parse_metrics(R"({"z": 1, "name": "x", "a": 2, "deep": {"b": 3}, "list": [4], "t": true})");
  ASSERT_TRUE(metrics);
  ASSERT_EQ(metrics->size(), 2U);
  EXPECT_EQ((*metrics)[0].name, "a");
  EXPECT_EQ((*metrics)[1].name, "z");
}

TEST(StageMetrics, BadFilesAreNamedG5) {
  EXPECT_EQ(fault_of("[1]"), "its metrics.json is not a JSON object");
  EXPECT_EQ(fault_of("7"), "its metrics.json is not a JSON object");
  EXPECT_NE(fault_of("{\"a\": NaN}").find("is no JSON"), std::string::npos);
  EXPECT_NE(fault_of("").find("is no JSON"), std::string::npos);
  EXPECT_EQ(fault_of("{\"a\": 1, \"a\": 2}"), "its metrics.json names a twice");
  EXPECT_EQ(fault_of("{\"a\": 1000000000000}"), "its metrics.json has a number out of range: a");
  EXPECT_EQ(fault_of("{\"a\": 1e30}"), "its metrics.json has a number out of range: a");
  EXPECT_EQ(fault_of("{\"a\": 18446744073709551615}"),
            "its metrics.json has a number out of range: a");
  EXPECT_EQ(fault_of("{\"" + std::string(65, 'n') + "\": 1}"),
            "its metrics.json has a name of more than 64 characters");
  std::string many = "{";
  for (int i = 0; i <= 64; ++i) many += "\"m" + std::to_string(i) + "\": 1,";
  many.back() = '}';
  EXPECT_EQ(fault_of(many), "its metrics.json has more than 64 numbers");
  EXPECT_EQ(fault_of("{\"a\":" + std::string(9, '[') + std::string(9, ']') + "}"),
            "its metrics.json is nested deeper than 8");
}

class MetricsFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string write(const std::string& text) const {
    std::ofstream(path()) << text;
    return path();
  }
  [[nodiscard]] std::string path() const { return folder_ + "/metrics.json"; }
  static std::string fault(const Result<std::vector<Metric>>& read) {
    return read ? "" : read.error().message;
  }
  const std::string folder_ = ::testing::TempDir() + "neap_metrics_" + std::to_string(::getpid());
  const std::uint32_t me_ = ::getuid();
};

TEST_F(MetricsFile, OnlyAPlainBoundedFileOfTheSubmitterIsReadG5) {
  EXPECT_EQ(fault(read_metrics(path(), me_)), "it left no metrics.json");
  EXPECT_TRUE(read_metrics(write("{\"a\": 1}"), me_));
  EXPECT_EQ(fault(read_metrics(path(), me_ + 1)), "its metrics.json belongs to another user");
  EXPECT_EQ(fault(read_metrics(write("{\"a\":1," + std::string(70'000, ' ') + "\"b\":1}"), me_)),
            "its metrics.json is larger than 64 KiB");
  std::filesystem::remove(path());
  std::filesystem::create_symlink("/etc/hostname", path());
  EXPECT_NE(fault(read_metrics(path(), me_)).find("cannot be opened"), std::string::npos);
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(fault(read_metrics(path(), me_)), "its metrics.json is no plain file");
}

// Before the end of the task is told, and once.
TEST_F(MetricsFile, AreReadWhenTheTaskHasEndedWellD9) {
  PoolState state;
  PipelineState& pipeline = state.pipelines.emplace_back();
  pipeline.id = PipelineId(0);
  pipeline.owner.uid = me_;
  pipeline.stages.resize(2);
  pipeline.stages[0].name = "train";
  pipeline.stages[0].phase = StagePhase::running;
  pipeline.stages[1].when = {{0, "a", Comparison::at_least, 1}};
  TaskState& task = state.tasks.add();
  task.pipeline = pipeline.id;
  task.phase = Phase::running;
  task.allocation = AllocationId(5);
  std::filesystem::create_directories(folder_ + "/0/train");
  std::ofstream(folder_ + "/0/train/metrics.json") << "{\"a\": 2}";
  std::vector<Event> posted;
  StageMetrics metrics(folder_, [&](Event event) { posted.push_back(std::move(event)); });
  metrics.restore(state);
  metrics.before(TaskStarted{{AllocationId(5), 1, 1}});
  metrics.before(TaskExited{{AllocationId(4), 1, 2}, 0, 0, {}});
  EXPECT_TRUE(posted.empty());
  metrics.before(TaskExited{{AllocationId(5), 1, 2}, 0, 0, {}});
  metrics.before(TaskExited{{AllocationId(5), 1, 2}, 0, 0, {}});
  ASSERT_EQ(posted.size(), 1U);
  const auto& read = std::get<MetricsRead>(posted[0]);
  EXPECT_EQ(read.values.at(0).value, 2'000'000);
  // Its end was in the books before a crash, and they were not: they are read after it.
  StageMetrics late(folder_, [&](Event event) { posted.push_back(std::move(event)); });
  state.tasks.at(task.id).phase = Phase::finished;
  state.pipelines[0].stages[0].phase = StagePhase::reading;
  late.restore(state);
  EXPECT_EQ(posted.size(), 2U);
}

TEST_F(MetricsFile, WhatNobodyRemembersIsSweptD9) {
  PoolState state;
  PipelineState& pipeline = state.pipelines.emplace_back();
  pipeline.id = PipelineId(2);
  ServiceState& service = state.services.emplace_back();
  service.spec.artifacts.inputs.push_back({"train", "1/train"});
  for (const char* name : {"0", "1", "2"}) {
    std::filesystem::create_directories(folder_ + "/" + name + "/train");
  }
  sweep_artifacts(folder_, state);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/0"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/1/train"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/2/train"));
}

}  // namespace
}  // namespace neap::daemon
