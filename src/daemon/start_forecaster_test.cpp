// F6: forecasts are made beside the loop, on a copy, and carry their age.
#include "daemon/start_forecaster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/testing/script.h"

namespace neap::daemon {
namespace {

using neap::testing::Script;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// One device that a has for an hour and that b waits for.
class Starts : public ::testing::Test {
 protected:
  Starts() {
    script_.configure();
    script_.node("n0", "d0", 1);
    submit("a");
    submit("b");
    script_.started("a");
    now_ = script_.now;
  }

  void submit(const std::string& name) {
    TaskSpec task = Script::training(name);
    task.work = hours(1);
    EXPECT_TRUE(script_.submit(std::move(task)));
  }
  void open(StartForecaster::Options options) {
    forecaster_ = std::make_unique<StartForecaster>(
        [this](const StartForecaster::Look& look) {
          ++looks_;
          if (answers_) look(script_.state);
        },
        [this] { return now_.load(); }, options);
  }
  [[nodiscard]] TaskId id(const std::string& name) const { return script_.task(name).id; }

  Script script_;
  std::atomic<Time> now_;
  std::atomic<int> looks_ = 0;
  std::atomic<bool> answers_ = true;
  std::unique_ptr<StartForecaster> forecaster_;
};

TEST_F(Starts, F6_NothingIsCopiedUntilSomebodyAsks) {
  open({});
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(looks_, 0);
  const auto made = forecaster_->wanted();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(looks_, 1);
}

TEST_F(Starts, F6_WhoWaitsStartsWhenTheOtherEndsAndTheStateIsAsItWas) {
  const std::uint64_t before = hash_of(script_.state);
  const std::uint64_t sequence = script_.state.sequence;
  open({});
  const auto made = forecaster_->wanted();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->draws, forecast::usual_draws);
  const forecast::Start* start = made->of(id("b"));
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->p50, now_.load() + hours(1));
  EXPECT_EQ(start->p90, now_.load() + hours(1));
  EXPECT_EQ(made->of(id("a")), nullptr) << "it runs";
  forecaster_.reset();
  EXPECT_EQ(hash_of(script_.state), before);
  EXPECT_EQ(script_.state.sequence, sequence);
}

TEST_F(Starts, F6_AnotherOneIsMadeInTimeAndAnOldOneIsNotShown) {
  open({.every = milliseconds(20), .patience = milliseconds(8'000)});
  const auto first = forecaster_->wanted();
  ASSERT_NE(first, nullptr);
  now_ = first->made + seconds(61);
  const auto second = forecaster_->wanted();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->made, now_.load());
  answers_ = false;
  std::this_thread::sleep_for(milliseconds(50));
  now_ = now_.load() + seconds(61);
  EXPECT_EQ(forecaster_->wanted(), nullptr);
}

// The daemon's end waits neither for an answer of the loop nor for who asked.
TEST_F(Starts, F6_EndsPromptly) {
  answers_ = false;
  open({.patience = milliseconds(60'000)});
  std::jthread asker([this] { EXPECT_EQ(forecaster_->wanted(), nullptr); });
  while (looks_ == 0) std::this_thread::sleep_for(milliseconds(1));
  const auto begin = steady_clock::now();
  forecaster_->stop();
  asker.join();
  forecaster_.reset();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(2'000));
}

// Hundreds of tasks on hundreds of devices: a draw takes a while, and ends when it is told to.
TEST_F(Starts, F6_EndsWhileItDraws) {
  for (int n = 0; n < 40; ++n) script_.node("m" + std::to_string(n), "d0", 8);
  for (int i = 0; i < 2'000; ++i) submit("t" + std::to_string(i));
  open({.most = milliseconds(600'000), .patience = milliseconds(100)});
  EXPECT_EQ(forecaster_->wanted(), nullptr) << "fifty draws take longer";
  const auto begin = steady_clock::now();
  forecaster_.reset();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(10'000));
}

}  // namespace
}  // namespace neap::daemon
