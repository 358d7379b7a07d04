// F6: forecasts that were wrong in one way are stretched by what they were wrong by.
#include "simulate/forecast/calibration.h"

#include <gtest/gtest.h>

#include <string>

#include "core/testing/script.h"

namespace neap::forecast {
namespace {

using neap::testing::Script;

// One after the other waits for a device. The forecast has them start evenly within 100 minutes; of
// a hundred `late` take `times` as long.
struct Trial {
  int late = 0;
  std::int64_t times = 1;
  int rounds = 900;

  int missed = 0, scored = 0;
  std::int64_t rank = 0;

  void run() {
    Script script;
    script.configure();
    script.node("n0", "d0", 1);
    Calibration calibration(3);
    trace::Chance chance(5);
    EXPECT_TRUE(script.submit(Script::training("first")));
    script.started("first");
    std::string running = "first";
    for (int i = 0; i < rounds; ++i) {
      const std::string name = "t" + std::to_string(i);
      EXPECT_TRUE(script.submit(Script::training(name)));
      Forecast plain;
      plain.made = script.now;
      plain.draws = usual_draws;
      Start start{script.task(name).id, plain.made + minutes(50), plain.made + minutes(90), {}};
      for (int d = 1; d <= usual_draws; ++d) start.draws.push_back(plain.made + minutes(2 * d));
      plain.starts = {std::move(start)};
      calibration.settle(script.state, script.now);
      const Forecast shown = calibration.corrected(plain);
      calibration.note(plain);
      // Even between 0 and 100 minutes: exactly what was foretold.
      Micros wait = seconds(static_cast<std::int64_t>(chance.below(6'000)));
      if (chance.below(100) < static_cast<std::uint64_t>(late)) wait = wait * times;
      script.work(wait);
      script.exited(running, 0);
      script.started(name);
      running = name;
      if (i < rounds / 3) continue;
      ++scored;
      missed += script.task(name).placed_at > shown.starts[0].p90 ? 1 : 0;
    }
    rank = calibration.rank_p90();
  }
};

TEST(Calibration, F6_GoodForecastsAreLeftAsTheyAre) {
  Trial trial;
  trial.run();
  EXPECT_NEAR(static_cast<double>(trial.rank), 900, 50);
  EXPECT_NEAR(100.0 * trial.missed / trial.scored, 10, 6);
}

// The planted fault: half of the tasks wait twice as long as the forecast thinks.
TEST(Calibration, F6_ForecastsThatAreTooShortAreStretched) {
  Trial trial;
  trial.late = 50;
  trial.times = 2;
  trial.run();
  EXPECT_GT(trial.rank, 1'200);
  EXPECT_NEAR(100.0 * trial.missed / trial.scored, 10, 6) << "uncorrected it is 32";
}

// Who waits still is no proof that waits are short.
TEST(Calibration, F6_ThoseThatWaitStillCount) {
  Script script;
  script.configure();
  script.node("n0", "d0", 2);
  Calibration calibration(3);
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(script.submit(Script::training(name)));
    script.started(name);
  }
  std::vector<std::string> names;
  for (int i = 0; i < 80; ++i) {
    names.push_back("t" + std::to_string(i));
    EXPECT_TRUE(script.submit(Script::training(names.back())));
  }
  for (int round = 0; round < 5; ++round) {
    Forecast plain;
    plain.made = script.now;
    const Time later = plain.made + hours(4);
    for (const std::string& name : names) {
      plain.starts.push_back({script.task(name).id, later, later, {later}});
    }
    calibration.note(plain);
    calibration.note(plain);  // too soon
    script.work(Calibration::between_notes);
  }
  std::string running = "a";
  for (int i = 0; i < 40; ++i) {  // half of them start in time
    script.work(seconds(10));
    script.exited(running, 0);
    script.started(names[static_cast<std::size_t>(i)]);
    running = names[static_cast<std::size_t>(i)];
  }
  calibration.settle(script.state, script.now);
  EXPECT_LE(calibration.rank_p90(), 1'000) << "nobody is late yet";
  script.work(hours(60));
  calibration.settle(script.state, script.now);
  EXPECT_EQ(calibration.rank_p90(), 1'500) << "half of them wait still: as far as it goes";
}

}  // namespace
}  // namespace neap::forecast
