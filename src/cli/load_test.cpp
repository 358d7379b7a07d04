// E2: neap load as a user gives it: what it sends, what it refuses, what it prints and logs.
#include "cli/load.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/value.h"
#include "posix/testing/tiny_http.h"
#include "trace/read_all.h"
#include "trace/requests.h"

namespace neap::cli {
namespace {

class LoadVerb : public ::testing::Test {
 protected:
  LoadVerb() {
    char pattern[] = "/tmp/neap-load-XXXXXX";
    folder_ = mkdtemp(pattern);
    options_.target = "http://127.0.0.1:" + std::to_string(server_.port()) + "/1/0";
    options_.rate = 100;
    options_.length = "300ms";
  }
  ~LoadVerb() override { std::filesystem::remove_all(folder_); }

  int run() {
    char* out = nullptr;
    char* err = nullptr;
    std::size_t out_size = 0;
    std::size_t err_size = 0;
    std::FILE* out_file = open_memstream(&out, &out_size);
    std::FILE* err_file = open_memstream(&err, &err_size);
    Terminal terminal(out_file, err_file);
    const int code = load_service(Context(terminal, {}), options_);
    terminal.flush();
    std::fclose(out_file);
    std::fclose(err_file);
    out_.assign(out, out_size);
    err_.assign(err, err_size);
    std::free(out);
    std::free(err);
    return code;
  }
  std::string refusal() {
    const auto made = load_options_of(options_, options_.target);
    return made ? "made" : to_string(made.error());
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  posix::TinyServer server_;
  std::string folder_;
  LoadVerbOptions options_;
  std::string out_;
  std::string err_;
};

TEST_F(LoadVerb, E2_ReportAndLogAgree) {
  options_.mix = "high=1,low=3";
  options_.json = true;
  options_.log = folder_ + "/log.csv";
  EXPECT_EQ(run(), 0) << err_;
  const auto report = Value::parse(out_);
  ASSERT_TRUE(report) << out_;
  const std::int64_t scheduled = report->number_at("scheduled");
  EXPECT_GT(scheduled, 5);
  EXPECT_EQ(report->at("outcomes").number_at("ok"), scheduled);
  EXPECT_EQ(report->at("statuses").number_at("200"), scheduled);
  EXPECT_EQ(report->at("first_byte").number_at("count"), scheduled);
  ASSERT_EQ(report->list_at("classes").size(), 2U);
  EXPECT_EQ(report->list_at("classes")[0].number_at("scheduled") +
                report->list_at("classes")[1].number_at("scheduled"),
            scheduled);
  // The log is a trace that can be replayed.
  const auto logged = trace::read_file<trace::Request, trace::ArrivalReader>(options_.log);
  ASSERT_TRUE(logged) << to_string(logged.error());
  EXPECT_EQ(static_cast<std::int64_t>(logged->size()), scheduled);
  options_.trace = options_.log;
  options_.log = folder_ + "/log.jsonl";
  EXPECT_EQ(run(), 0) << err_;
  std::ifstream lines(options_.log);
  std::int64_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto value = Value::parse(line);
    ASSERT_TRUE(value) << line;
    EXPECT_EQ(value->text_at("outcome"), "ok");
    EXPECT_EQ(value->number_at("status"), 200);
  }
  EXPECT_EQ(count, scheduled);
}

TEST_F(LoadVerb, E2_ForPeople) {
  options_.mix = "high=1,low=1";
  options_.keep_alive = "1s";
  options_.slo_first_byte = "5s";
  EXPECT_EQ(run(), 0) << err_;
  for (const char* part :
       {"requests in", "x 200", "time to first token", "lateness of the generator",
        "within the objective", "CLASS", "high", "connections"}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << "\n" << out_;
  }
}

TEST_F(LoadVerb, E1_RefusalsApart) {
  options_.path = "/status/429";
  EXPECT_EQ(run(), 1);  // nothing was answered well
  EXPECT_NE(out_.find("x 429 ("), std::string::npos) << out_;
  EXPECT_NE(out_.find("with Retry-After)"), std::string::npos) << out_;
}

TEST_F(LoadVerb, G5_BadOptionsNameThemselves) {
  const auto with = [this](const std::function<void(LoadVerbOptions&)>& spoil) {
    const LoadVerbOptions before = options_;
    spoil(options_);
    const std::string text = refusal();
    options_ = before;
    return text;
  };
  const auto starts = [](const std::string& text, const std::string& with_what) {
    return text.starts_with(with_what) ? "" : text;
  };
  EXPECT_EQ(refusal(), "made");
  EXPECT_EQ(starts(with([](auto& o) { o.mix = "high"; }), "--mix: expected NAME=WEIGHT"), "");
  EXPECT_EQ(starts(with([](auto& o) { o.mix = "a=1,a=2"; }), "--mix: "), "");
  EXPECT_EQ(starts(with([](auto& o) { o.mix = "a=0"; }), "--mix: "), "");
  EXPECT_EQ(starts(with([](auto& o) { o.length = "0s"; }), "--duration: "), "");
  EXPECT_EQ(starts(with([](auto& o) { o.length = "fast"; }), "--duration: "), "");
  EXPECT_EQ(starts(with([](auto& o) { o.timeout = "0s"; }), "--timeout: "), "");
  EXPECT_EQ(starts(with([](auto& o) { o.target = "https://x/"; }), "https://x/: TLS"), "");
  EXPECT_EQ(starts(with([](auto& o) { o.target = "http://"; }), "http://: expected"), "");
  EXPECT_EQ(starts(with([](auto& o) { o.target = "http://127.0.0.1:99999/"; }),
                   "http://127.0.0.1:99999/: expected a port"),
            "");
  EXPECT_EQ(starts(with([](auto& o) { o.target = "ftp://127.0.0.1/"; }), "ftp://"), "");
  EXPECT_EQ(starts(with([](auto& o) { o.body_file = "/nowhere"; }), "/nowhere: "), "");
  EXPECT_EQ(starts(with([](auto& o) {
                     o.speed = 0;
                     o.trace = "/nowhere";
                   }),
                   "--speed: "),
            "");
}

TEST_F(LoadVerb, E2_UrlsOfAllShapes) {
  options_.target = "http://[::1]:8080/v1/x";
  auto made = load_options_of(options_, options_.target);
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->target.address, "::1");
  EXPECT_EQ(made->target.port, 8080);
  EXPECT_EQ(made->target.path, "/v1/x");
  EXPECT_EQ(made->target.host, "[::1]:8080");
  options_.target = "http://127.0.0.1";
  made = load_options_of(options_, options_.target);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->target.port, 80);
  EXPECT_EQ(made->target.path, "/v1/completions");
  EXPECT_NE(made->target.body.find("\"max_tokens\": 32, \"stream\": true"), std::string::npos);
}

TEST_F(LoadVerb, E2_TracesOfAllShapes) {
  const auto own = read_load_trace(
      file("own.csv", "arrival_s,input_tokens,output_tokens\n10.5,7,3\n10.0,,\n12,1,1\n"), 2);
  ASSERT_TRUE(own) << to_string(own.error());
  ASSERT_EQ(own->size(), 3U);
  EXPECT_EQ((*own)[0].at, Micros(0));
  EXPECT_EQ((*own)[0].input_tokens, -1);
  EXPECT_EQ((*own)[1].at, milliseconds(250));
  EXPECT_EQ((*own)[1].output_tokens, 3);
  EXPECT_EQ((*own)[2].at, seconds(1));
  const auto azure = read_load_trace(
      file("azure.csv",
           "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
           "2023-11-16 18:15:50.9951690,396,109\n"),
      1);
  ASSERT_TRUE(azure) << to_string(azure.error());
  EXPECT_EQ((*azure)[1].at, Micros(4'314'579));
  EXPECT_EQ((*azure)[1].input_tokens, 396);
  const auto mooncake = read_load_trace(
      file("m.jsonl", R"({"timestamp": 27, "input_length": 6, "output_length": 9, "hash_ids": [1]})"
                      "\n"),
      1);
  ASSERT_TRUE(mooncake) << to_string(mooncake.error());
  EXPECT_EQ((*mooncake)[0].output_tokens, 9);
  const auto broken = read_load_trace(file("b.csv", "arrival_s\n1\nsoon\n"), 1);
  ASSERT_FALSE(broken);
  EXPECT_NE(to_string(broken.error()).find("b.csv:3"), std::string::npos)
      << to_string(broken.error());
  EXPECT_FALSE(read_load_trace(file("e.csv", "arrival_s\n"), 1));
  EXPECT_FALSE(read_load_trace(file("e.csv", ""), 1));
}

}  // namespace
}  // namespace neap::cli
