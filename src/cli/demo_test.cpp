// The demonstration: its options, its files, what it takes for evidence, and that every promise
// can fail.
#include "cli/demo.h"

#include <gtest/gtest.h>

#include "cli/demo_files.h"
#include "cli/demo_screen.h"
#include "cli/demo_verdict.h"
#include "cli/demo_watch.h"
#include "config/pool_file.h"
#include "config/task_file.h"

namespace neap::cli {
namespace {

TEST(DemoOptions, AreRead) {
  const auto options =
      parse_demo_options({"--seconds", "90", "--keep", "--json", "--seed=7", "--dir", "/tmp/x"});
  ASSERT_TRUE(options) << to_string(options.error());
  EXPECT_EQ(options->length, seconds(90));
  EXPECT_EQ(options->afterwards, Afterwards::keep_running);
  EXPECT_EQ(options->report, Report::json);
  EXPECT_EQ(options->seed, 7U);
  EXPECT_EQ(options->folder, "/tmp/x");
}

TEST(DemoOptions, RefusalsNameTheOption) {
  EXPECT_EQ(parse_demo_options({"--seconds", "5"}).error().context, "--seconds");
  EXPECT_EQ(parse_demo_options({"--seconds", "90x"}).error().context, "--seconds");
  EXPECT_EQ(parse_demo_options({"--seconds"}).error().message, "a value is missing");
  EXPECT_EQ(parse_demo_options({"--fast"}).error().context, "--fast");
}

// The files are what the configuration accepts, for the pool that they are for.
TEST(DemoFiles, AreValid) {
  DemoFiles files;
  files.folder = "/tmp/demo";
  files.socket = "/tmp/demo/neap.sock";
  files.state_dir = "/tmp/demo/state";
  files.examples = "/x/examples";
  files.port = 18000;
  config::Problems problems("pool.yaml");
  const auto pool = config::parse_pool_file(demo_pool_text(files), problems);
  ASSERT_TRUE(pool) << to_string(problems.to_error());
  for (const DemoTask& task : {demo_training(files, {}, demo_trainings[0]), demo_chat(files, {})}) {
    config::Problems faults(task.name);
    const config::Submitter submitter{{0, 0, "root"}, task.workdir};
    EXPECT_TRUE(config::parse_task_file(task.text, submitter, faults))
        << to_string(faults.to_error());
  }
}

Value json(const std::string& text) {
  const auto value = Value::parse(text);
  EXPECT_TRUE(value) << text;
  return value.value_or(Value{});
}

// One device of each role; who holds it.
PoolPicture picture(const std::string& guard, const std::string& buffer, const std::string& core) {
  PoolPicture out;
  for (const auto& [role, holder] :
       {std::pair{"guard", guard}, std::pair{"buffer", buffer}, std::pair{"core", core}}) {
    SeenDevice device{.name = std::string("sim-") + role, .role = role, .model = "A100-80G"};
    if (!holder.empty()) device.holders = {holder};
    out.devices.push_back(device);
  }
  out.tasks = {{.name = "train-a", .state = "running", .step = 70},
               {.name = "train-b", .state = "running", .step = 80}};
  return out;
}

// A run in which all went well, told by pictures and events as the daemon tells it.
DemoFigures good_run() {
  DemoFigures figures;
  figures.burst_began_us = 1'000'000;
  const auto event = [&](const char* kind, const char* subject, const char* message,
                         std::int64_t time) {
    figures.evidence.note_events(
        json(std::string(R"({"events": [{"kind": ")") + kind + R"(", "subject": ")" + subject +
             R"(", "message": ")" + message + R"(", "time_us": )" + std::to_string(time) + "}]}"));
  };
  event("replica_healthy", "chat.1", "healthy", 500'000);
  figures.evidence.note(picture("chat.1", "", "train-b"));
  event("replica_healthy", "chat.2", "healthy", 4'000'000);
  figures.evidence.note(picture("chat.1", "chat.2", "train-b"));
  event("yield_asked", "train-b", "asked to yield (boundary, preempted)", 6'000'000);
  event("task_exited", "train-b", "yielded (exit 75)", 8'000'000);
  event("replica_healthy", "chat.3", "healthy", 11'000'000);
  figures.evidence.note(picture("chat.1", "chat.2", "chat.3"));
  event("task_placed", "train-b", "placed on demo/3", 60'000'000);
  figures.at_end = picture("chat.1", "", "train-b");
  figures.usage = json(R"({"lost_work_us": 0, "effective_utilisation_ppm": 610000,
                           "mean_wait_us": 900000, "preemptions": 1, "tasks": 2})");
  figures.load.scheduled = 10;
  figures.load.by_outcome[0] = 10;
  figures.load.first_byte.record(milliseconds(80), 10);
  return figures;
}

TEST(DemoVerdict, AGoodRunHolds) {
  const std::vector<Promise> promises = promises_of(good_run());
  for (const Promise& promise : promises) {
    EXPECT_TRUE(promise.held) << promise.text << ": " << promise.figure;
  }
  EXPECT_TRUE(all_held(promises));
  const Value report = json(report_json(good_run(), promises));
  EXPECT_EQ(report.number_at("burst_to_serving_us"), 10'000'000);
  EXPECT_EQ(report.number_at("burst_to_buffer_us"), 3'000'000);
  EXPECT_TRUE(report.true_at("held"));
  EXPECT_EQ(report.list_at("promises").size(), promises.size());
}

// Each spoils one thing in a good run.
TEST(DemoVerdict, EveryPromiseCanFail) {
  const std::vector<std::pair<std::string, std::function<void(DemoFigures&)>>> spoilers{
      {"guard", [](DemoFigures& f) { f.evidence.ready[0].role = "core"; }},
      {"buffer", [](DemoFigures& f) { f.evidence.ready[1].role = "core"; }},
      {"buffer after training", [](DemoFigures& f) { f.evidence.ready[1].time_us = 20'000'000; }},
      {"no device from training", [](DemoFigures& f) { f.evidence.ready[2].taken_from = ""; }},
      {"not at a boundary", [](DemoFigures& f) { f.evidence.yielded = 0; }},
      {"killed", [](DemoFigures& f) { f.evidence.killed = 1; }},
      {"lost work", [](DemoFigures& f) { f.usage = json(R"({"lost_work_us": 1})"); }},
      {"lost work unknown", [](DemoFigures& f) { f.usage = Value(); }},
      {"training gone", [](DemoFigures& f) { f.at_end.tasks.pop_back(); }},
      {"training waits", [](DemoFigures& f) { f.at_end.tasks[0].state = "waiting"; }},
      {"a failed request", [](DemoFigures& f) { f.load.by_outcome[2] = 1; }},
      {"a request without an end", [](DemoFigures& f) { f.load.scheduled = 11; }},
      {"no latency", [](DemoFigures& f) { f.load.first_byte.clear(); }}};
  for (const auto& [what, spoil] : spoilers) {
    DemoFigures figures = good_run();
    spoil(figures);
    EXPECT_FALSE(all_held(promises_of(figures))) << what;
  }
}

TEST(DemoWatch, ReadsTheDaemonsAnswers) {
  const PoolPicture seen = picture_of(
      json(R"({"devices": [{"name": "sim-0", "role": "guard", "model": "A100-80G",
               "holders": [{"task": "chat.1"}]}]})"),
      json(R"({"pool": {"now_us": 5}, "tasks": [
               {"name": "train-a", "kind": "training", "state": "waiting", "reason": "why",
                "step": 7, "finished_us": null},
               {"name": "old", "kind": "training", "state": "finished", "finished_us": 3}]})"),
      json(R"({"services": [{"name": "chat", "replicas_ready": 1, "replicas_wanted": 2}]})"));
  EXPECT_EQ(seen.now_us, 5);
  ASSERT_EQ(seen.tasks.size(), 1U);
  EXPECT_EQ(seen.task("train-a")->step, 7);
  EXPECT_EQ(seen.task("old"), nullptr);
  EXPECT_EQ(seen.devices.at(0).holders, std::vector<std::string>{"chat.1"});
  EXPECT_EQ(seen.replicas_wanted, 2);
}

TEST(DemoScreen, FramesFitAndSteerNoTerminal) {
  Terminal terminal(stdout, stderr);
  PoolPicture pool = picture("chat.1", "", "train-b");
  pool.tasks.push_back(
      {.name = "x", .state = "waiting", .reason = "\033[2J" + std::string(200, 'y')});
  const LoadView load{.elapsed = seconds(61), .length = seconds(120), .phase = "burst", .rate = 8};
  const auto lines = frame_lines(pool, load, {"chat.2: placed\nhere"}, terminal, 60);
  for (const std::string& line : lines) {
    EXPECT_LE(width_of(line), 60U) << line;
    EXPECT_EQ(line.find('\033'), std::string::npos);
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  EXPECT_NE(lines[0].find("1:01 of 2:00"), std::string::npos);
  EXPECT_NE(plain_line(pool, load).find("[chat.1 | - | train-b]"), std::string::npos);
}

}  // namespace
}  // namespace neap::cli
