// The verbs against a real API server with a double of the daemon behind it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api/event_hub.h"
#include "api/routes.h"
#include "api/server.h"
#include "api/testing/fake_control.h"
#include "api/testing/raw_connection.h"
#include "cli/command_line.h"
#include "cli/value.h"
#include "cli/verbs.h"
#include "config/pool_file.h"
#include "config/task_file.h"
#include "core/model/result.h"

namespace neap::cli {
namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Program program() {
  Program program;
  program.version = "9.9.9";
  program.serve = [](const ServeOptions& options) {
    return options.pool_file == "p.yaml" && options.state_dir == "/s" ? 42 : 1;
  };
  program.verify_journal = [](const std::string& folder) { return folder == "/s" ? 43 : 1; };
  return program;
}

Outcome neap(std::vector<std::string> words) {
  char* out = nullptr;
  char* err = nullptr;
  std::size_t out_size = 0;
  std::size_t err_size = 0;
  std::FILE* out_file = ::open_memstream(&out, &out_size);
  std::FILE* err_file = ::open_memstream(&err, &err_size);
  std::vector<const char*> argv = {"neap"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  Outcome outcome;
  {
    Terminal terminal(out_file, err_file);
    outcome.code =
        run_command_line(static_cast<int>(argv.size()), argv.data(), program(), terminal);
  }
  std::fclose(out_file);
  std::fclose(err_file);
  outcome.out.assign(out, out_size);
  outcome.err.assign(err, err_size);
  std::free(out);
  std::free(err);
  return outcome;
}

class Verbs : public ::testing::Test {
 protected:
  void SetUp() override {
    socket_ = folder_.file("s");
    api::ServerSettings settings;
    settings.socket_path = socket_;
    auto server = api::Server::start(settings, control_, hub_);
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
    ::setenv("NEAP_SOCKET_API", socket_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("NEAP_SOCKET_API"); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }

  api::testing::TemporaryFolder folder_;
  std::string socket_;
  api::testing::FakeControl control_;
  api::EventHub hub_;
  std::unique_ptr<api::Server> server_;
};

TEST_F(Verbs, PsShowsThePoolLiveTasksAndServices) {
  const Outcome shown = neap({"ps"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_TRUE(has(shown.out, "4 devices (simulated)")) << shown.out;
  EXPECT_TRUE(has(shown.out, "mine")) << shown.out;
  EXPECT_TRUE(has(shown.out, "n1:2"));
  EXPECT_FALSE(has(shown.out, "done"));
  EXPECT_TRUE(has(shown.out, "chat"));
  EXPECT_FALSE(has(shown.out, "\033[")) << "colour where nobody looks";
  EXPECT_TRUE(has(neap({"ps", "--all"}).out, "done"));
  EXPECT_TRUE(has(neap({"ps", "--names"}).out, "mine\n"));
  const auto json = Value::parse(neap({"ps", "--json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->list_at("tasks").at(0).text_at("name"), "mine");
}

// F6: the forecast with its age, as an answer and as a column; it is of others' tasks too.
TEST_F(Verbs, F6_WhenItWillStart) {
  const std::string reason = neap({"why", "mine"}).out;
  EXPECT_TRUE(has(reason, "starts within 2min .. 2h05 (forecast 12s old, 50 draws)\n")) << reason;
  const std::string shown = neap({"ps", "--start"}).out;
  EXPECT_TRUE(has(shown, "forecast of starts: 12s old, 50 draws, p50 .. p90\n")) << shown;
  EXPECT_TRUE(has(shown, "STARTS WITHIN")) << shown;
  EXPECT_TRUE(has(shown, "2min .. over 14 days")) << shown;
  EXPECT_FALSE(has(neap({"ps"}).out, "STARTS WITHIN"));
  EXPECT_EQ(neap({"ps", "--start", "--json"}).code, 2);
  const auto json = Value::parse(neap({"why", "mine", "--json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->number_at("forecast_age_us"), 12'000'000);
  EXPECT_EQ(json->number_at("start_p90_us") - json->number_at("start_p50_us"), 7'380'000'000);
}

// G4: a pause is said in every listing.
TEST_F(Verbs, G4_PauseIsSaidEverywhere) {
  EXPECT_EQ(neap({"pause", "--reason", "incident 7"}).code, 0);
  EXPECT_TRUE(control_.asked().back().starts_with("pause \"incident 7\" by "));
  const std::vector<std::vector<std::string>> listings = {{"ps"},
                                                          {"ps", "--services"},
                                                          {"gpus"},
                                                          {"describe", "mine"},
                                                          {"describe", "chat"},
                                                          {"why", "mine"},
                                                          {"usage"}};
  for (const auto& words : listings) {
    EXPECT_TRUE(has(neap(words).out, "PAUSED by ")) << words.front();
    std::vector<std::string> json = words;
    json.push_back("--json");
    const auto value = Value::parse(neap(json).out);
    ASSERT_TRUE(value) << words.front();
    EXPECT_TRUE(value->at("pool").true_at("paused")) << words.front();
  }
  EXPECT_EQ(neap({"resume"}).code, 0);
  EXPECT_FALSE(has(neap({"ps"}).out, "PAUSED"));
}

// F8: what the stage has shown, and the two ways out of it.
TEST_F(Verbs, F8_StagesAreShownCheckedAndChanged) {
  const std::string shown = neap({"stage", "show"}).out;
  EXPECT_TRUE(has(shown, "stage memory since ")) << shown;
  EXPECT_TRUE(has(shown, "measured in it: starts 12")) << shown;
  EXPECT_TRUE(has(shown, "before stage time:")) << shown;
  EXPECT_TRUE(has(shown, "no drill has been run in this stage")) << shown;
  EXPECT_TRUE(has(shown, "forced, missing faults: 1: in a hurry")) << shown;
  EXPECT_TRUE(has(shown, "stage memory; balanced (shares)")) << shown;
  EXPECT_TRUE(has(shown, "from preset balanced: pool.elastic_buffer: 16")) << shown;
  EXPECT_EQ(neap({"stage", "check"}).code, 1) << "something is missing";
  const Outcome refused = neap({"stage", "advance"});
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(has(refused.err, "the check of stage memory is not passed: drill")) << refused.err;
  EXPECT_EQ(neap({"stage", "advance", "--force"}).code, 2) << "force needs a reason";
  EXPECT_EQ(neap({"stage", "advance", "--force", "--why", "tested elsewhere"}).code, 0);
  EXPECT_TRUE(control_.asked().back().starts_with("stage time forced by "));
  EXPECT_EQ(neap({"stage", "back"}).code, 0);
  EXPECT_TRUE(control_.asked().back().starts_with("stage physical by "));
  EXPECT_EQ(neap({"stage", "back", "--to", "time"}).code, 2);
  const auto json = Value::parse(neap({"stage", "show", "--json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->text_at("next_stage"), "time");
}

TEST_F(Verbs, D10_TheReviewSaysWhatTheWeekSpeaksFor) {
  const std::string shown = neap({"review", "--week", "2027-11-08"}).out;
  EXPECT_TRUE(has(shown, "more-for-training: training waited")) << shown;
  EXPECT_TRUE(has(shown, "proposed: pool.inference_guard_min: 6, pool.elastic_buffer: 5")) << shown;
  EXPECT_TRUE(has(shown, "guard 16, free for 60.0 % of its time")) << shown;
  const Outcome wrong = neap({"review", "--week", "monday"});
  EXPECT_NE(wrong.code, 0);
  EXPECT_TRUE(has(wrong.err, "expected one such as 2027-11-08")) << wrong.err;
  const auto json = Value::parse(neap({"review", "--week", "2027-11-08", "--json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->number_at("from_us"), 1'825'632'000'000'000);
}

TEST_F(Verbs, D10_InitWritesAPoolFileWithAPreset) {
  const std::string file = folder_.file("preset.yaml");
  ASSERT_EQ(neap({"init", file, "--gpus", "8", "--preset", "training-led"}).code, 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  config::Problems problems(file);
  const auto pool = config::parse_pool_file(text.str(), problems);
  ASSERT_TRUE(pool) << problems.text();
  EXPECT_EQ(pool->spec.preset, Preset::training_led);
  EXPECT_EQ(pool->spec.inference_guard_min + pool->spec.elastic_buffer, 2);
  EXPECT_NE(neap({"init", folder_.file("b"), "--gpus", "3", "--preset", "balanced"}).code, 0);
}

TEST_F(Verbs, A3_ProfilesAreListed) {
  const std::string shown = neap({"profiles"}).out;
  EXPECT_TRUE(has(shown, "vision/resnet")) << shown;
  EXPECT_TRUE(has(shown, "8GiB")) << shown;
  EXPECT_TRUE(has(shown, "9GiB")) << shown;
  EXPECT_TRUE(has(shown, "1h00")) << shown;
}

TEST_F(Verbs, DescribeWhyAndGpus) {
  const std::string described = neap({"describe", "mine"}).out;
  EXPECT_TRUE(has(described, "two devices were free")) << described;
  EXPECT_TRUE(has(neap({"describe", "chat"}).out, "18000"));
  const std::string reason = neap({"why", "mine"}).out;
  EXPECT_TRUE(has(reason, "too few wholly free devices")) << reason;
  EXPECT_TRUE(has(reason, "  - mine ends\n")) << reason;
  EXPECT_TRUE(has(neap({"gpus"}).out, "mine (60% 16GiB)")) << neap({"gpus"}).out;
  const Outcome none = neap({"describe", "none"});
  EXPECT_EQ(none.code, exit_code_of(ErrorCode::not_found));
  EXPECT_TRUE(has(none.err, "no task is called none"));
  const std::string used = neap({"usage"}).out;
  EXPECT_TRUE(has(used, "60%") && has(used, "useful")) << used;
}

TEST_F(Verbs, E2_LatencyOfAService) {
  const Outcome shown = neap({"latency", "chat"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "objective: 99% of requests answered well, first byte within 500ms"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "burn, fast: 1h00 20.0, 5min 31.0, alarm from 14.4  ALARM"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "burn, slow: 6h00 unknown, 30min unknown, alarm from 6.0\n"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "engines: 1 of 2 tell, 3 running, between tokens p50 21.0 ms"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "class high")) << shown.out;
  EXPECT_TRUE(has(neap({"describe", "chat"}).out, "SLO burns")) << neap({"describe", "chat"}).out;
  const auto json = Value::parse(neap({"latency", "chat", "--json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->number_at("requests"), 1'200);
  EXPECT_TRUE(json->at("engine").at("waiting").is_null());  // unknown, not zero
  EXPECT_EQ(neap({"latency", "none"}).code, exit_code_of(ErrorCode::not_found));
}

TEST_F(Verbs, B7_F2_WhatIsFoughtOver) {
  const Outcome shown = neap({"ladder", "chat"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "fought over: cpu, with train (confidence 95%); 7.3 times as slow"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "waits for a processor")) << shown.out;
  EXPECT_TRUE(has(shown.out, "ladder: auto, rung flow for cpu")) << shown.out;
  EXPECT_TRUE(has(shown.out, "training: 10.6 steps/s, 12.5 before the first rung (-15 %)"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "none -> flow (cpu); waits")) << shown.out;
  const Outcome baseline = neap({"baseline", "show", "chat"});
  EXPECT_TRUE(has(baseline.out, "train stood still")) << baseline.out;
  EXPECT_TRUE(has(baseline.out, "7.00")) << baseline.out;
  EXPECT_EQ(neap({"ladder", "none"}).code, exit_code_of(ErrorCode::not_found));
  EXPECT_EQ(neap({"baseline", "run", "chat", "--duration", "5min"}).code, 2);
}

TEST_F(Verbs, SubmitCancelAndScale) {
  const std::string file =
      write("job.yaml", "task: {name: new, command: [x], gpus: 1, workdir: sub}\n");
  const Outcome made = neap({"submit", file});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "new submitted, id 4"));
  char folder[4096];
  ASSERT_NE(::getcwd(folder, sizeof folder), nullptr);
  EXPECT_TRUE(has(control_.submitted(), std::string(folder) + "/sub"));
  EXPECT_EQ(neap({"submit", file}).code, exit_code_of(ErrorCode::conflict));
  EXPECT_EQ(neap({"cancel", "mine", "chat"}).code, 0);
  EXPECT_EQ(neap({"scale", "chat", "3"}).code, 0);
  EXPECT_EQ(neap({"scale", "chat", "--max", "2"}).code, 0);
  const auto asked = control_.asked();
  ASSERT_EQ(asked.size(), 5u);
  EXPECT_TRUE(asked[1].starts_with("cancel 1 by "));
  EXPECT_TRUE(asked[2].starts_with("cancel service 1 by "));
  EXPECT_TRUE(asked[3].starts_with("scale 1 3..3 by "));
  EXPECT_TRUE(asked[4].starts_with("scale 1 -1..2 by "));
  EXPECT_EQ(neap({"scale", "chat"}).code, 2);
  EXPECT_EQ(neap({"cancel", "none", "mine"}).code, exit_code_of(ErrorCode::not_found));
}

// G5: each bad input has its clear error, and nothing is changed.
TEST_F(Verbs, G5_BadInput) {
  const std::string file = folder_.file("bad.yaml");
  const auto submit_text = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    const Outcome outcome = neap({"submit", file});
    EXPECT_NE(outcome.code, 0) << text.substr(0, 200);
    return outcome.err;
  };
  const std::string head = "task:\n  name: bad\n  command: [x]\n";
  EXPECT_EQ(submit_text(head + "  gpus: 1\n  teir: a\n"),
            file + ":5: task.teir: is not a known field; did you mean \"tier\"?\n");
  EXPECT_TRUE(has(submit_text(head + "  gpu: {memory: 16GB}\n"),
                  file + ":4: task.gpu.memory: \"16GB\" has the unit \"GB\"; expected memory"));
  EXPECT_TRUE(has(submit_text(head + "  gpu: {compute: -5%}\n"), "\"-5%\" is negative"));
  EXPECT_TRUE(has(submit_text(head + "  gpu: {compute: 200%}\n"), "more than one whole device"));
  EXPECT_EQ(submit_text(head + "  gpus: 5\n"),
            file + ":4: task.gpus: asks for 5 devices; the pool has 4\n");
  EXPECT_EQ(submit_text("task:\n  name: mine\n  command: [x]\n  gpus: 1\n"),
            file + ":2: task.name: a live task is called mine\n");
  EXPECT_TRUE(has(submit_text(head + "  gpus: 1\ntask:\n  name: bad\n"), ":5: task: given twice"));
  EXPECT_TRUE(has(submit_text("task: {name: bad, command: [x"), file + ":"));
  EXPECT_TRUE(
      has(submit_text(std::string("\x7f\x45\x4c\x46\x00\x01", 6)), ":1: not text: byte 0x7f"));
  std::ofstream(file) << "a";
  ASSERT_EQ(::truncate(file.c_str(), 100'000'000), 0);
  const Outcome large = neap({"submit", file});
  EXPECT_EQ(large.code, exit_code_of(ErrorCode::too_large));
  EXPECT_EQ(large.err, file + ": over the limit of 1024 KiB for a file\n");
  EXPECT_EQ(neap({"submit", folder_.file("none")}).code, exit_code_of(ErrorCode::not_found));
  EXPECT_TRUE(control_.asked().empty());
}

TEST_F(Verbs, RunFollowsAndGivesTheExitCode) {
  std::thread ender([this] {
    while (control_.asked().empty()) std::this_thread::yield();
    control_.append_log(4, "hello\n");
    control_.set_state(4, "failed", 7);
  });
  const Outcome failed = neap({"run", "--name", "r1", "--gpus", "2", "--", "sh", "-c", "exit 7"});
  ender.join();
  EXPECT_EQ(failed.code, 7) << failed.err;
  EXPECT_EQ(failed.out, "hello\n");
  EXPECT_TRUE(has(failed.err, "failed with 7")) << failed.err;
  EXPECT_TRUE(has(control_.submitted(), R"("command":["sh","-c","exit 7"])"));
  std::thread finisher([this] {
    while (control_.asked().size() < 2) std::this_thread::yield();
    control_.set_state(5, "finished", 0);
  });
  EXPECT_EQ(neap({"run", "--", "true"}).code, 0);
  finisher.join();
}

TEST_F(Verbs, LogsPrintsFollowsAndCuts) {
  EXPECT_EQ(neap({"logs", "mine"}).out, "line 1\nline 2\n");
  EXPECT_EQ(neap({"logs", "-n", "1", "mine"}).out, "line 2\n");
  EXPECT_EQ(neap({"logs", "-n", "0", "mine"}).out, "");
  EXPECT_EQ(neap({"logs", "-n", "9", "mine"}).out, "line 1\nline 2\n");
  control_.set_state(1, "finished", 0);
  EXPECT_EQ(neap({"logs", "-f", "mine"}).out, "line 1\nline 2\n");
  EXPECT_EQ(neap({"logs", "none"}).code, exit_code_of(ErrorCode::not_found));
}

TEST_F(Verbs, EventsInPages) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    api::EventRow row;
    row.sequence = i;
    row.kind = "kind" + std::to_string(i);
    row.about_pool = true;
    control_.add_event(row);
  }
  const std::string newest = neap({"events", "--limit", "2"}).out;
  EXPECT_TRUE(!has(newest, "kind1") && has(newest, "kind2") && has(newest, "kind3")) << newest;
  const std::string all = neap({"events"}).out;
  EXPECT_TRUE(has(all, "kind1") && has(all, "kind3")) << all;
  const std::string later = neap({"events", "--after", "1", "--limit", "1"}).out;
  EXPECT_TRUE(!has(later, "kind1") && has(later, "kind2") && !has(later, "kind3")) << later;
}

TEST_F(Verbs, SubmittingFromAFolderThatIsGoneSaysSo) {
  const std::string before = std::filesystem::current_path().string();
  const std::string gone = socket_ + ".gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  const Outcome outcome = neap({"run", "--", "true"});
  std::filesystem::current_path(before);
  EXPECT_EQ(outcome.code, exit_code_of(ErrorCode::not_found));
  EXPECT_TRUE(has(outcome.err, "the folder you are in cannot be named")) << outcome.err;
}

TEST_F(Verbs, WithoutADaemonTheErrorSaysWhatToDo) {
  server_.reset();
  for (const char* verb : {"ps", "gpus", "events", "pause", "usage"}) {
    const Outcome outcome = neap({verb});
    EXPECT_EQ(outcome.code, exit_code_of(ErrorCode::unavailable)) << verb;
    EXPECT_TRUE(has(outcome.err, socket_ + ": no daemon answers; start one with `neap serve`"))
        << outcome.err;
  }
  const Outcome version = neap({"version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(has(version.out, "neap 9.9.9"));
}

TEST_F(Verbs, SocketOptionGoesBeforeTheEnvironment) {
  ::setenv("NEAP_SOCKET_API", "/nowhere/s", 1);
  EXPECT_NE(neap({"ps"}).code, 0);
  EXPECT_EQ(neap({"--socket", socket_, "ps"}).code, 0);
  EXPECT_EQ(neap({"ps", "--socket", socket_}).code, 0);
}

TEST(CommandLine, ExplainsItself) {
  EXPECT_EQ(neap({"--help"}).code, 0);
  EXPECT_TRUE(has(neap({"--help"}).out, "submit"));
  EXPECT_EQ(neap({}).code, 2);
  const Outcome wrong = neap({"sumbit", "x"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "sumbit") && has(wrong.err, "submit")) << wrong.err;
  EXPECT_EQ(neap({"ps", "--jsno"}).code, 2);
  EXPECT_EQ(neap({"serve", "p.yaml", "--state-dir", "/s"}).code, 42);
  EXPECT_EQ(neap({"verify", "/s"}).code, 43);
}

TEST(Mig, PlansFromTheCommandLine) {
  const Outcome text =
      neap({"mig", "plan", "--devices", "2xA100-80G", "--demand", "3g.40gb=2,1g.10gb=5"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "3g.40gb@4 new")) << text.out;
  EXPECT_TRUE(has(text.out, "1. create  ")) << text.out;
  EXPECT_TRUE(has(text.out, "Weight served: 7, the most there is.")) << text.out;
  const Outcome json =
      neap({"mig", "plan", "--devices", "2xA100-80G", "--demand", "3g.40gb=1,8g.1gb=1", "--json"});
  EXPECT_EQ(json.code, 2);
  EXPECT_TRUE(has(json.err, "--demand: \"8g.1gb\" is no profile")) << json.err;
  const Outcome good =
      neap({"mig", "plan", "--devices", "A30-24G", "--demand", "4g.24gb=1,2g.12gb=1", "--json"});
  const auto value = Value::parse(good.out);
  ASSERT_TRUE(value) << good.out;
  EXPECT_EQ(value->text_at("method"), "exact");
  EXPECT_EQ(value->list_at("wants").size(), 2U);
  EXPECT_EQ(value->list_at("steps").size(), 1U);
  EXPECT_EQ(value->list_at("devices")[0].list_at("instances")[0].text_at("state"), "new");
}

TEST(Mig, SaysWhatIsWrong) {
  EXPECT_TRUE(has(neap({"mig", "plan", "--demand", "3g.40gb=1"}).err,
                  "expected either --devices or --layout"));
  EXPECT_TRUE(has(neap({"mig", "plan", "--devices", "4xA10", "--demand", "3g.40gb=1"}).err,
                  "--devices: \"A10\" is no model with a table"));
  EXPECT_EQ(neap({"mig", "plan", "--layout", "/nowhere", "--demand", "3g.40gb=1"}).code, 3);
  EXPECT_EQ(neap({"mig", "profiles", "A10"}).code, 3);
  EXPECT_EQ(neap({"mig"}).code, 2);
  const Outcome profiles = neap({"mig", "profiles", "H200-141G", "--json"});
  const auto value = Value::parse(profiles.out);
  ASSERT_TRUE(value) << profiles.out;
  EXPECT_EQ(value->list_at("profiles").size(), 7U);
  EXPECT_TRUE(has(neap({"mig", "profiles", "a30-24g"}).out, "2g.12gb+me"));
}

// The reference pages name every verb and every route, and no other.
TEST(Pages, ListEveryVerbAndRoute) {
  const auto first_cells = [](const std::string& page, const std::string& prefix) {
    std::ifstream in(std::string(NEAP_SOURCE_DIR) + "/docs/operators/" + page);
    std::set<std::string> cells;
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("| `" + prefix)) continue;
      cells.insert(line.substr(3, line.find('`', 3) - 3));
    }
    return cells;
  };
  std::set<std::string> verbs;
  std::istringstream help(neap({"--help"}).out);
  bool listing = false;
  for (std::string line; std::getline(help, line);) {
    if (listing && line.empty()) break;
    // Deeper indentation goes on with the words of the verb above.
    if (listing && line[2] != ' ') verbs.insert("neap " + line.substr(2, line.find(' ', 2) - 2));
    listing = listing || line == "Subcommands:";
  }
  verbs.insert("neap demo");
  EXPECT_EQ(first_cells("cli.md", "neap "), verbs);

  api::testing::FakeControl control;
  api::EventHub hub;
  api::EventFeed events(control, hub, api::Authority(0));
  api::LogFeed logs(control);
  const auto router = api::make_router({control, events, logs, api::Authority(0), 0, 0});
  std::set<std::string> listed;
  for (const char* method : {"GET ", "POST ", "DELETE "}) {
    listed.merge(first_cells("api.md", method));
  }
  const auto routes = router.routes();
  EXPECT_EQ(listed, std::set<std::string>(routes.begin(), routes.end()));
}

TEST(CommandLine, CompletionKnowsEveryVerb) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome text = neap({"completion", shell});
    EXPECT_EQ(text.code, 0);
    for (const char* verb :
         {"init",  "doctor", "serve",   "submit", "run",      "ps",    "describe", "why",
          "logs",  "cancel", "scale",   "pause",  "resume",   "gpus",  "events",   "version",
          "usage", "load",   "latency", "ladder", "baseline", "engine"}) {
      EXPECT_TRUE(has(text.out, verb)) << shell << " " << verb;
    }
  }
  EXPECT_EQ(neap({"completion", "tcsh"}).code, 2);
}

TEST(Init, WritesAValidPoolFileAndNeverOverwrites) {
  const api::testing::TemporaryFolder folder;
  const std::string file = folder.file("pool.yaml");
  for (const char* count : {"1", "4", "8"}) {
    EXPECT_EQ(neap({"init", file, "--gpus", count}).code, 0);
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    config::Problems problems(file);
    const auto pool = config::parse_pool_file(text.str(), problems);
    ASSERT_TRUE(pool) << problems.text();
    EXPECT_EQ(std::to_string(pool->spec.total_gpus), count);
    EXPECT_EQ(neap({"init", file}).code, exit_code_of(ErrorCode::conflict));
    ::unlink(file.c_str());
  }
}

TEST(TaskText, IsATaskFileWhateverTheWordsHold) {
  RunOptions options;
  options.command = {"sh", "-c", "echo \"a: b\" '#x' \\ {y} \n end"};
  options.env = {"A=b=c: d", "E="};
  options.memory = "16GiB";
  options.compute = "60%";
  options.checkpoint = {"sdk", "signals"};
  const auto text = task_text(options, "a");
  ASSERT_TRUE(text);
  config::Problems problems("run");
  const auto file = config::parse_task_file(*text, {{0, 0, "root"}, "/w"}, problems);
  ASSERT_TRUE(file) << problems.text() << *text;
  EXPECT_EQ(file->launch.command, options.command);
  EXPECT_EQ(file->launch.env[0].second, "b=c: d");
  EXPECT_EQ(file->request().share, MilliGpu(600));
  options.env = {"nothing"};
  EXPECT_EQ(task_text(options, "a").error().context, "--env nothing");
}

}  // namespace
}  // namespace neap::cli
