// E2: each request once, in counts, windows and slices, over restarts of whoever reads.
#include "gateway/haproxy/request_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "posix/fd.h"

namespace neap::gateway {
namespace {

class RequestLogTest : public ::testing::Test {
 protected:
  RequestLogTest() {
    std::array<char, 32> pattern{"/tmp/neap-log-XXXXXX"};
    folder_ = mkdtemp(pattern.data());
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    out_.reset(ends[0]);
    in_.reset(ends[1]);
    restart();
  }
  ~RequestLogTest() override { std::filesystem::remove_all(folder_); }

  // A crash: nothing is handed on, nothing is said.
  void restart() {
    log_ = std::make_unique<RequestLog>(
        folder_, SpoolLimits{}, [this] { return now_; },
        [](const std::string& service) -> std::optional<Micros> {
          if (service != "chat") return {};
          return milliseconds(500);
        });
    ASSERT_TRUE(log_->open());
  }
  void request(Time ended, const std::string& rest = "chat a1 200 -- 0 90000 5000 1 2 0 high - -") {
    const std::string line = "R2 " + std::to_string(ended.us) + " " + rest + " -\n";
    ASSERT_EQ(write(in_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  void read() { EXPECT_EQ(log_->read(out_.get()), ""); }
  void collect(const std::vector<RequestSlice>& slices) {
    for (const RequestSlice& one : slices) responses_ += one.totals.responses;
  }
  [[nodiscard]] std::uint64_t counted() {
    ServiceSample sample;
    log_->complete("chat", sample);
    return sample.requests;
  }

  std::string folder_;
  posix::Fd out_;
  posix::Fd in_;
  Time now_ = Time(0) + hours(1'000);
  std::unique_ptr<RequestLog> log_;
  std::uint64_t responses_ = 0;
};

TEST_F(RequestLogTest, E2_CountsAndWindowsOutliveACrash) {
  for (int i = 0; i < 30; ++i) request(now_ - seconds(i));
  read();
  EXPECT_EQ(counted(), 30U);
  for (int i = 0; i < 10; ++i) request(now_);  // nobody reads them
  restart();
  read();
  EXPECT_EQ(counted(), 40U);
  const ServiceLatency latency = log_->latency("chat");
  EXPECT_EQ(latency.requests, 40U);
  ASSERT_EQ(latency.series.size(), 2U);
  EXPECT_EQ(latency.series[0].windows[0].requests, 40U);
  EXPECT_EQ(latency.series[1].name, "high");
  EXPECT_EQ(latency.series[0].windows[0].first_byte.max(), milliseconds(5));
  EXPECT_EQ(latency.objective.first_byte, milliseconds(500));
}

// Killed at every moment of three slices: what is handed on adds up to what was answered.
TEST_F(RequestLogTest, E2_SlicesAreHandedOnOnceOverCrashes) {
  std::uint64_t answered = 0;
  for (int second = 0; second < 60; ++second) {
    now_ = now_ + seconds(1);
    request(now_);
    request(now_, "chat a2 200 -- 0 90000 5000 1 2 0 low - -");
    answered += 2;
    if (second % 3 == 0) read();
    if (second % 7 == 0) {
      restart();
      read();
    }
    collect(log_->take_closed());
  }
  read();
  collect(log_->take_all());
  EXPECT_EQ(responses_, answered);
  restart();
  read();
  collect(log_->take_all());
  EXPECT_EQ(responses_, answered);
  // Without the note of what was handed on, all that is kept would be counted again.
  std::filesystem::remove(folder_ + "/handed-on");
  restart();
  read();
  collect(log_->take_all());
  EXPECT_EQ(responses_, 2 * answered);
}

TEST_F(RequestLogTest, E2_BurnIsSeenWithTheSample) {
  for (int i = 0; i < 100; ++i) {
    request(now_ - seconds(i), "chat a1 200 -- 0 900000 800000 1 2 0 - - -");
  }
  read();
  ServiceSample sample;
  log_->complete("chat", sample);
  EXPECT_TRUE(sample.burn.fast.alarm);
  EXPECT_EQ(sample.burn.fast.long_milli, 100'000);
  EXPECT_EQ(sample.first_byte_p95, milliseconds(800));
}

TEST_F(RequestLogTest, OldRequestsAreNotNew) {
  for (int i = 0; i < 50; ++i) request(now_ - minutes(10));
  read();
  ServiceSample sample;
  log_->complete("chat", sample);
  EXPECT_FALSE(sample.first_byte_p95);
  EXPECT_EQ(log_->latency("chat").series[0].windows[0].requests, 0U);
  EXPECT_EQ(log_->latency("chat").series[0].windows[2].requests, 50U);
  request(now_ + hours(5));  // the clock was set back: not in the future
  read();
  EXPECT_EQ(log_->latency("chat").series[0].windows[0].requests, 1U);
  request(now_, "gone a1 200 -- 0 90000 5000 1 2 0 high - -");  // of a service that was removed
  read();
  EXPECT_EQ(counted(), 51U);
}

}  // namespace
}  // namespace neap::gateway
