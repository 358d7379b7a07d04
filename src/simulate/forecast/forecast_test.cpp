// F6: when tasks will start, from replays of the engine itself.
#include "simulate/forecast/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <vector>

#include "core/model/pool_index.h"
#include "core/testing/script.h"

namespace neap::forecast {
namespace {

using neap::testing::Script;

class Forecasts : public ::testing::Test {
 protected:
  Forecasts() { script_.configure(); }

  void submit(const std::string& name, std::optional<Micros> work, int gpus = 1,
              const std::string& tier = "train_normal") {
    TaskSpec task = Script::training(name, gpus);
    task.work = work;
    task.tier = tier;
    ASSERT_TRUE(script_.submit(std::move(task)));
  }
  [[nodiscard]] Forecast forecast(Limits limits = {}, std::uint64_t seed = 1) {
    StartForecast draws(script_.state, script_.now, history_, seed, limits);
    while (draws.draws() < usual_draws) EXPECT_TRUE(draws.draw());
    return draws.result();
  }
  [[nodiscard]] Start start_of(const Forecast& forecast, const std::string& name) const {
    const Start* start = forecast.of(script_.task(name).id);
    if (start != nullptr) return *start;
    ADD_FAILURE() << name << " does not wait";
    return {};
  }
  void ended(Micros held, std::optional<Micros> declared = {}, const std::string& team = "") {
    history_.add({held, TierId(3), 2, team, declared, Ended::How::finished});
  }

  Script script_;
  History history_;
};

// By hand: two devices; a has an hour left, b two, c waits with half an hour, d is fourth in line.
TEST_F(Forecasts, F6_DeclaredWorkAsByHand) {
  script_.node("n0", "d0", 2);
  submit("a", hours(1));
  submit("b", hours(2));
  submit("c", minutes(30));
  submit("d", hours(5));
  submit("e", hours(1), 2);
  script_.started("a");
  script_.started("b");
  script_.work(minutes(15));
  const std::uint64_t before = hash_of(script_.state);
  const Forecast made = forecast();
  EXPECT_EQ(hash_of(script_.state), before) << "the live state is only read";
  EXPECT_TRUE(index_is_current(script_.state));
  EXPECT_EQ(made.draws, usual_draws);
  ASSERT_EQ(made.starts.size(), 3U);
  const Time begin = script_.now - minutes(15);
  EXPECT_EQ(start_of(made, "c").p50, begin + hours(1));
  EXPECT_EQ(start_of(made, "c").p90, begin + hours(1));
  // c's process starts a second after its devices are there.
  EXPECT_EQ(start_of(made, "d").p50, begin + minutes(90) + seconds(1));
  // Both devices: when d has ended.
  EXPECT_EQ(start_of(made, "e").p90, begin + minutes(390) + seconds(2));
  const auto* where = &made;
  EXPECT_EQ(where->of(script_.task("a").id), nullptr);
}

// The foretold is what happens when nobody else comes: the same engine, asked.
TEST_F(Forecasts, F6_AYieldIsPlayedOutAsTheEngineWould) {
  script_.node("n0", "d0", 1);
  submit("low", hours(9));
  script_.started("low");
  script_.work(hours(2));
  submit("high", hours(1), 1, "train_deadline_near");
  const Forecast made = forecast();
  const Start start = start_of(made, "high");
  ASSERT_LT(start.p90, script_.now + minutes(30)) << "it was asked to yield, or will be";
  EXPECT_EQ(start.p50, start.p90);
  // And low goes on after it: both are asked about once it waits again.
  for (int i = 0; i < 60 && script_.task("low").phase != Phase::yielding; ++i) {
    script_.work(minutes(1));
  }
  ASSERT_EQ(script_.task("low").phase, Phase::yielding);
  script_.pass(script_.task("low").yield_by - script_.now);
  script_.checkpoint("low");
  script_.exited("low", 75);
  EXPECT_EQ(script_.now, start.p50);
  EXPECT_EQ(script_.task("high").phase, Phase::starting);
  EXPECT_EQ(start_of(forecast(), "low").p50, script_.now + seconds(1) + hours(1));
}

TEST_F(Forecasts, F6_WhoCannotStartIsNotWithinTheHorizon) {
  script_.node("n0", "d0", 1);
  submit("a", hours(24 * 20));
  script_.started("a");
  submit("b", hours(1));
  EXPECT_EQ(start_of(forecast(), "b").p50, Time::never());
  EXPECT_EQ(start_of(forecast({.horizon = hours(24 * 30)}), "b").p50, script_.now + hours(24 * 20));
  EXPECT_EQ(start_of(forecast({.horizon = hours(24 * 30), .events = 0}), "b").p90, Time::never());
}

TEST_F(Forecasts, F6_SameSeedSameForecastAndAnotherOneAnother) {
  script_.node("n0", "d0", 1);
  submit("a", std::nullopt);
  submit("b", std::nullopt);
  script_.started("a");
  for (int i = 1; i <= 100; ++i) ended(minutes(i));
  const Start one = start_of(forecast(), "b");
  EXPECT_EQ(one.p90, start_of(forecast(), "b").p90);
  EXPECT_NE(one.p90, start_of(forecast({}, 2), "b").p90);
}

// It has run for 80 minutes: what ended sooner says nothing of it any more.
TEST_F(Forecasts, F6_UndeclaredWorkIsDrawnFromWhoTookLonger) {
  script_.node("n0", "d0", 1);
  submit("a", std::nullopt);
  submit("b", std::nullopt);
  script_.started("a");
  for (int i = 1; i <= 100; ++i) ended(minutes(i));
  script_.work(minutes(80));
  const Start start = start_of(forecast(), "b");
  EXPECT_GT(start.p50, script_.now + minutes(5));
  EXPECT_LT(start.p50, script_.now + minutes(16));
  EXPECT_GT(start.p90, script_.now + minutes(14));
  EXPECT_LE(start.p90, script_.now + minutes(20));
}

TEST_F(Forecasts, F6_AsksToStop) {
  script_.node("n0", "d0", 1);
  submit("a", hours(1));
  script_.started("a");
  submit("b", hours(1));
  StartForecast draws(script_.state, script_.now, history_, 1);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(draws.draw(stop.get_token()));
  EXPECT_EQ(draws.draws(), 0);
  EXPECT_TRUE(draws.result().starts.empty());
}

// ---- history ---------------------------------------------------------------------------------

TEST_F(Forecasts, F6_HistoryIsReadOnceAndCountsTheWholeTime) {
  script_.node("n0", "d0", 1);
  submit("a", hours(1));
  script_.started("a");
  script_.work(minutes(72));
  script_.exited("a", 0);
  history_.read(script_.state);
  history_.read(script_.state);
  EXPECT_EQ(history_.size(), 1U);
  // Nine more of the kind, so that the team and tier speak for themselves: a factor of 1.2.
  for (int i = 0; i < 9; ++i) ended(minutes(12), minutes(10));
  submit("b", hours(10));
  trace::Chance chance(1);
  EXPECT_EQ(history_.draw_total(script_.task("b"), Micros(0), chance), hours(12));
  EXPECT_EQ(history_.draw_total(script_.task("b"), hours(11), chance), hours(12));
  EXPECT_GT(history_.draw_total(script_.task("b"), hours(13), chance), hours(13));
  for (std::size_t i = 0; i < History::kept + 20; ++i) ended(minutes(30), minutes(10));
  EXPECT_EQ(history_.size(), History::kept);
  EXPECT_EQ(history_.draw_total(script_.task("b"), Micros(0), chance), hours(30));
}

TEST_F(Forecasts, F6_FewFactorsMeanThatTheDeclarationIsTakenAtItsWord) {
  script_.node("n0", "d0", 1);
  submit("b", hours(10));
  for (int i = 0; i < 9; ++i) ended(minutes(12), minutes(10));
  for (int i = 0; i < 50; ++i) ended(minutes(20), minutes(10), "another team");
  trace::Chance chance(1);
  EXPECT_EQ(history_.draw_total(script_.task("b"), Micros(0), chance), hours(10));
}

// Without anything to go by: half of those that ran so long run as long again, or for longer.
TEST_F(Forecasts, F6_TheGuessDoublesByHalves) {
  trace::Chance chance(7);
  int doubled = 0, fourfold = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Micros total = guess_total(hours(3), chance);
    ASSERT_GT(total, hours(3));
    doubled += total >= hours(6) ? 1 : 0;
    fourfold += total >= hours(12) ? 1 : 0;
    ASSERT_GT(guess_total(minutes(9), chance), minutes(9));
  }
  EXPECT_NEAR(doubled, 5'000, 200);
  EXPECT_NEAR(fourfold, 2'500, 200);
}

}  // namespace
}  // namespace neap::forecast
