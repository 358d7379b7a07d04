// E2: what engines count themselves, over replicas that come, go, begin anew and say nothing.
#include "daemon/engine_watch.h"

#include <gtest/gtest.h>

#include "daemon/fetch_text.h"
#include "posix/testing/tiny_http.h"

namespace neap::daemon {
namespace {

using posix::TinyServer;
using namespace std::chrono_literals;

std::string counters(int running, int generated, int fast, int all) {
  const auto line = [](const char* name, int value) {
    return std::string(name) + " " + std::to_string(value) + "\n";
  };
  return line("vllm:num_requests_running", running) +
         line("vllm:generation_tokens_total", generated) +
         line("vllm:inter_token_latency_seconds_bucket{le=\"0.01\"}", fast) +
         line("vllm:inter_token_latency_seconds_bucket{le=\"0.1\"}", all) +
         line("vllm:inter_token_latency_seconds_bucket{le=\"+Inf\"}", all);
}

class EngineWatchTest : public ::testing::Test {
 protected:
  EngineWatch::Replica replica(std::uint64_t id, const TinyServer& server) const {
    return {"chat", AllocationId(id), server.port()};
  }
  api::EngineRow look(Micros later) {
    now_ = now_ + later;
    watch_.look();
    return watch_.row("chat");
  }

  Time now_ = Time(0) + hours(10);
  std::vector<EngineWatch::Replica> replicas_;
  EngineWatch watch_{[this] { return replicas_; }, [this] { return now_; }};
};

TEST_F(EngineWatchTest, E2_RatesAndGapsOfAllReplicas) {
  TinyServer one;
  TinyServer two;
  replicas_ = {replica(1, one), replica(2, two)};
  one.set_metrics(counters(1, 1000, 500, 1000));
  two.set_metrics(counters(2, 0, 0, 0));
  api::EngineRow row = look(seconds(5));
  EXPECT_EQ(row.replicas, 2);
  EXPECT_EQ(row.running, 3);
  EXPECT_EQ(row.waiting, api::unknown);
  EXPECT_EQ(row.generated_tokens_milli_per_s, api::unknown);  // read once
  one.set_metrics(counters(1, 1200, 600, 1200));
  two.set_metrics(counters(0, 100, 0, 100));
  row = look(seconds(10));
  EXPECT_EQ(row.running, 1);
  EXPECT_EQ(row.generated_tokens_milli_per_s, 30'000);  // 300 tokens in 10 s
  EXPECT_EQ(row.inter_token_count, 300);
  EXPECT_GT(row.inter_token_p50_us, 10'000);
  EXPECT_LE(row.inter_token_p99_us, 100'000);
  EXPECT_EQ(watch_.row("other").asked, 0);
}

TEST_F(EngineWatchTest, S13_SilenceIsUnknownNotZero) {
  TinyServer engine;
  TinyServer other;
  replicas_ = {replica(1, engine), replica(2, other)};
  engine.set_metrics(counters(1, 10, 0, 0));
  api::EngineRow row = look(seconds(5));
  EXPECT_EQ(row.replicas, 1);
  EXPECT_EQ(row.asked, 2);
  // One without counters is left alone for a minute.
  const int asked = other.served();
  row = look(seconds(5));
  EXPECT_EQ(other.served(), asked);
  row = look(seconds(60));
  EXPECT_EQ(other.served(), asked + 1);
  // Began anew: no rate until it was read twice since; never a negative one.
  engine.set_metrics(counters(1, 3, 0, 0));
  row = look(seconds(5));
  EXPECT_EQ(row.generated_tokens_milli_per_s, api::unknown);
  replicas_ = {{"chat", AllocationId(1), posix::free_port()}};
  row = look(seconds(31));
  EXPECT_EQ(row.replicas, 0);
  EXPECT_EQ(row.running, api::unknown);
  replicas_.clear();
  EXPECT_EQ(look(seconds(5)).asked, 0);
}

TEST(FetchText, BoundedInTimeAndSize) {
  TinyServer server;
  server.set_metrics(std::string(100'000, 'x'));
  EXPECT_EQ(fetch_text(server.port(), "/metrics", 100'000, 2s)->size(), 100'000U);
  EXPECT_EQ(fetch_text(server.port(), "/metrics", 10'000, 2s).error().code, ErrorCode::too_large);
  EXPECT_EQ(fetch_text(server.port(), "/status/404", 1000, 2s).error().message, "status 404");
  EXPECT_EQ(fetch_text(posix::free_port(), "/metrics", 1000, 2s).error().code,
            ErrorCode::unavailable);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(fetch_text(server.port(), "/hang", 1000, 100ms));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
}

}  // namespace
}  // namespace neap::daemon
