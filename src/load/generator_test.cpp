// E2: latency from the scheduled arrival; a slow service does not slow the generator.
#include "load/generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "posix/testing/tiny_http.h"

namespace neap::load {
namespace {

LoadOptions options_for(std::uint16_t port, const std::string& path, double rate, Micros length) {
  return {.curve = *RateCurve::constant(rate, length), .target = {.port = port, .path = path}};
}

LoadSummary run(const LoadOptions& options, const LoadObserver& observer = {}) {
  const auto summary = run_load(options, observer, {});
  EXPECT_TRUE(summary) << to_string(summary.error());
  return summary.value_or(LoadSummary{});
}

// The server counts an answer after its last byte, which the generator may have by then.
std::uint64_t served_in_the_end(const posix::TinyServer& server, std::uint64_t expected) {
  for (int i = 0; i < 500 && static_cast<std::uint64_t>(server.served()) < expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return static_cast<std::uint64_t>(server.served());
}

TEST(Generator, E2_TimesOfStreams) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/4/30", 20, seconds(1));
  options.target.body = R"({"prompt": "{n}"})";
  std::vector<RequestResult> results;
  LoadObserver observer;
  observer.result = [&](const RequestResult& result) { results.push_back(result); };
  const LoadSummary summary = run(options, observer);
  ASSERT_GT(summary.scheduled, 5U);
  EXPECT_EQ(summary.count(Outcome::ok), summary.scheduled);
  EXPECT_EQ(summary.failed(), 0U);
  EXPECT_EQ(summary.tokens, 4 * summary.scheduled);
  EXPECT_EQ(results.size(), summary.scheduled);
  for (const RequestResult& result : results) {
    EXPECT_EQ(result.tokens, 4);
    EXPECT_LE(result.scheduled, result.started);
    EXPECT_GE(*result.first_byte - result.started, milliseconds(30));
    EXPECT_GE(result.finished - result.started, milliseconds(120));
  }
  EXPECT_EQ(summary.inter_token.count(), 3 * summary.scheduled);
  EXPECT_GE(summary.inter_token.percentiles().p50, milliseconds(25));
  EXPECT_EQ(summary.lateness.count(), summary.scheduled);
}

TEST(Generator, ASlowServerDoesNotSlowArrivals) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/1/800", 50, milliseconds(500));
  std::uint32_t most = 0;
  LoadObserver observer;
  options.progress_every = milliseconds(50);
  observer.progress = [&](const LoadProgress& progress) {
    most = std::max(most, progress.in_flight);
  };
  const LoadSummary summary = run(options, observer);
  // All arrive before the first is answered: together they are in flight.
  EXPECT_EQ(most, summary.scheduled);
  EXPECT_EQ(summary.failed(), 0U);
}

TEST(Generator, BoundedConnectionsDropAndCount) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/1/700", 50, milliseconds(400));
  options.in_flight_max = 3;
  const LoadSummary summary = run(options);
  EXPECT_EQ(summary.count(Outcome::ok), 3U);
  EXPECT_EQ(summary.count(Outcome::dropped), summary.scheduled - 3);
  EXPECT_EQ(summary.failed(), summary.scheduled - 3);
}

TEST(Generator, EveryWayToFailIsTold) {
  const posix::TinyServer server;
  const LoadSummary busy = run(options_for(server.port(), "/status/503", 20, milliseconds(500)));
  EXPECT_EQ(busy.count(Outcome::bad_status), busy.scheduled);
  const LoadSummary cut = run(options_for(server.port(), "/cut/2", 20, milliseconds(500)));
  EXPECT_EQ(cut.count(Outcome::cut), cut.scheduled);
  EXPECT_TRUE(cut.first_byte.empty());  // latencies are of good requests
  const LoadSummary nobody = run(options_for(posix::free_port(), "/1/1", 20, milliseconds(500)));
  EXPECT_EQ(nobody.count(Outcome::refused), nobody.scheduled);
  EXPECT_GT(nobody.scheduled, 0U);
}

TEST(Generator, SilenceTimesOut) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/hang", 20, milliseconds(300));
  options.timeout = milliseconds(200);
  options.progress_every = milliseconds(20);
  Micros waited{0};
  LoadObserver observer;
  observer.progress = [&](const LoadProgress& progress) {
    waited = std::max(waited, progress.oldest_wait.value_or(Micros(0)));
  };
  const LoadSummary summary = run(options, observer);
  EXPECT_GT(summary.scheduled, 0U);
  EXPECT_EQ(summary.count(Outcome::timed_out), summary.scheduled);
  EXPECT_GT(waited, milliseconds(100));
}

TEST(Generator, StopsWhenAsked) {
  const posix::TinyServer server;
  const LoadOptions options = options_for(server.port(), "/hang", 20, seconds(600));
  std::stop_source stop;
  LoadObserver observer;
  observer.progress = [&](const LoadProgress& progress) {
    if (progress.in_flight > 0) stop.request_stop();
  };
  const auto summary = run_load(options, observer, stop.get_token());
  ASSERT_TRUE(summary);
  EXPECT_GT(summary->count(Outcome::interrupted), 0U);
  EXPECT_EQ(summary->failed(), 0U);
}

TEST(Generator, E2_OneConnectionServesMany) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/keep/1000", 100, milliseconds(500));
  options.keep_idle = seconds(1);
  const LoadSummary summary = run(options);
  EXPECT_EQ(summary.count(Outcome::ok), summary.scheduled);
  EXPECT_LT(summary.connections, summary.scheduled / 2);
  EXPECT_EQ(summary.tokens, 7 * summary.scheduled);  // as the answers' own usage says
  EXPECT_EQ(served_in_the_end(server, summary.scheduled), summary.scheduled);
}

// Closed by its server after five: what was sent into it is sent again, once, and answered once.
TEST(Generator, E2_AStaleConnectionIsNoFailure) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/keep/5", 100, milliseconds(600));
  options.keep_idle = seconds(1);
  const LoadSummary summary = run(options);
  EXPECT_EQ(summary.count(Outcome::ok), summary.scheduled);
  EXPECT_GT(summary.sent_again, 0U);
  EXPECT_EQ(served_in_the_end(server, summary.scheduled), summary.scheduled);
  // A first connection that breaks is a failure all the same.
  const LoadSummary none = run(options_for(server.port(), "/keep/0", 20, milliseconds(300)));
  EXPECT_EQ(none.count(Outcome::cut), none.scheduled);
  EXPECT_EQ(none.sent_again, 0U);
}

TEST(Generator, E1_RefusalsSayWhenToComeAgain) {
  const posix::TinyServer server;
  std::int32_t told = 0;
  LoadObserver observer;
  observer.result = [&](const RequestResult& result) { told = result.retry_after.value_or(-1); };
  const LoadSummary shed =
      run(options_for(server.port(), "/status/429", 20, milliseconds(300)), observer);
  EXPECT_EQ(shed.by_status.at(429), shed.scheduled);
  EXPECT_EQ(shed.retry_after, shed.scheduled);
  EXPECT_EQ(told, 3);
}

TEST(Generator, E2_ClassesInProportionAndApart) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/1/0", 200, seconds(1));
  options.classes = {{"high", 1}, {"low", 3}};
  const LoadSummary summary = run(options);
  ASSERT_EQ(summary.classes.size(), 2U);
  const std::uint64_t high = summary.classes[0].scheduled;
  EXPECT_EQ(high + summary.classes[1].scheduled, summary.scheduled);
  EXPECT_GT(high, summary.scheduled / 8);
  EXPECT_LT(high, summary.scheduled / 2);
  EXPECT_EQ(summary.classes[0].first_byte.count(), summary.classes[0].count(Outcome::ok));
}

TEST(Generator, E2_ARecordedTraceAsItWas) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/1/0", 1, seconds(1));
  options.trace = {{Micros(0)}, {milliseconds(100)}, {milliseconds(100)}, {milliseconds(350)}};
  std::vector<Micros> scheduled;
  LoadObserver observer;
  observer.result = [&](const RequestResult& result) { scheduled.push_back(result.scheduled); };
  const LoadSummary summary = run(options, observer);
  EXPECT_EQ(summary.count(Outcome::ok), 4U);
  std::ranges::sort(scheduled);
  EXPECT_EQ(scheduled, (std::vector<Micros>{Micros(0), milliseconds(100), milliseconds(100),
                                            milliseconds(350)}));
  std::swap(options.trace[0], options.trace[3]);
  EXPECT_EQ(run_load(options, {}, {}).error().context, "trace");
}

TEST(Generator, E2_GoodputIsWhatKeepsToTheObjective) {
  const posix::TinyServer server;
  LoadOptions options = options_for(server.port(), "/2/60", 20, milliseconds(400));
  options.objective = {.first_byte = milliseconds(50), .total = Micros(0)};
  EXPECT_EQ(run(options).within_objective, 0U);
  options.objective = {.first_byte = seconds(5), .total = seconds(10)};
  const LoadSummary summary = run(options);
  EXPECT_EQ(summary.within_objective, summary.scheduled);
}

TEST(Generator, RefusesBadOptions) {
  LoadOptions options = options_for(0, "/", 1, seconds(1));
  EXPECT_EQ(run_load(options, {}, {}).error().code, ErrorCode::invalid_argument);
  options.target.port = 1;
  options.target.address = "localhost";
  EXPECT_EQ(run_load(options, {}, {}).error().context, "target");
}

}  // namespace
}  // namespace neap::load
