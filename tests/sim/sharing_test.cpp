// What the assessment promises, held against the engine: ten devices in two clusters, and the same
// work on the seven of one pool. S5
#include <gtest/gtest.h>

#include <array>

#include "simulate/assess/assess.h"
#include "tests/sim/scenario.h"

namespace neap::sim::sharing_test {
namespace {

constexpr int days = 3;
// Of inference, by hour: 8 h a day of each of its seven devices, while training runs too.
constexpr std::array<std::int64_t, 24> wanted{1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 5, 7,
                                              7, 6, 5, 3, 1, 1, 1, 1, 1, 1, 1, 1};

std::int64_t hour_of_day(Time at) { return at.us / hours(1).value % 24; }
std::int64_t wanted_at(Time at) { return wanted[static_cast<std::size_t>(hour_of_day(at))]; }

struct Seen {
  std::int64_t used = 0, samples = 0;  // milli-devices in use, of each sample
  std::int64_t short_of = 0;           // samples with fewer replicas than wanted
  std::int64_t finished = 0;
  Micros lost{0};
};

// Training of 3 devices for 20 h a day: 15 jobs of 4 h at midnight.
Seen shared_by(std::int32_t devices) {
  PoolSpec pool = pool_with(1, 0);
  pool.scale.mode = ScaleMode::tidal;
  pool.scale.dwell = minutes(10);
  Stage stage(pool, nodes_of(devices, devices));
  stage->submit(service_of("chat", 1, 7), [](Time at) {
    return std::optional(wanted_at(at) * 95 / 10);  // 9.5 of the 10 that a replica serves at once
  });
  Seen seen;
  for (int day = 0; day < days; ++day) {
    for (int i = 0; i < 15; ++i) {
      stage->submit(task_of({.name = "job" + std::to_string(day * 15 + i), .length = hours(4)}));
    }
    for (int sample = 0; sample < 24 * 6; ++sample) {
      stage.run_for(minutes(10));
      seen.used += stage.used_milli();
      ++seen.samples;
      // Once a change of the hour has had its time.
      const bool settled = stage->now().us % hours(1).value >= minutes(30).value;
      if (settled && stage.ready("chat") < wanted_at(stage->now())) ++seen.short_of;
    }
  }
  stage.state().tasks.for_each([&](const TaskState& task) {
    if (!task.service.valid() && task.phase == Phase::finished) ++seen.finished;
    seen.lost += task.lost;
  });
  return seen;
}

TEST(Scenario, S5_TheSevenDevicesThatTheAssessmentSaysDoTheWorkOfTen) {
  assess::UseTrace training{hours(1), {}}, inference{hours(1), {}};
  for (int day = 0; day < 14; ++day) {
    for (std::size_t h = 0; h < 24; ++h) {
      training.milli.push_back(h < 20 ? 3'000 : 0);
      inference.milli.push_back(wanted[h] * 1'000);
    }
  }
  assess::AssessSpec spec;
  spec.lead = Micros(0);
  const auto found = assess::assess(spec, training, inference);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->apart, 10);
  ASSERT_EQ(found->together, 7) << found->verdict;

  const Seen seen = shared_by(static_cast<std::int32_t>(found->together));
  EXPECT_EQ(seen.finished, days * 15) << "all the training is done on each day";
  EXPECT_EQ(seen.lost, Micros(0));
  EXPECT_EQ(seen.short_of, 0) << "inference has what it wants";
  const std::int64_t use_milli = seen.used / seen.samples / found->together;
  EXPECT_GE(use_milli, 660) << "field: about 40 % to 70 %";
  std::printf(
      "S5 simulated: %lld devices for %lld, %lld.%lld %% in use (assessed %lld.%lld %%, "
      "apart %lld.%lld %%), %lld of %d jobs done, short %lld of %lld samples\n",
      static_cast<long long>(found->together), static_cast<long long>(found->apart),
      static_cast<long long>(use_milli / 10), static_cast<long long>(use_milli % 10),
      static_cast<long long>(found->use_together_ppm / 10'000),
      static_cast<long long>(found->use_together_ppm / 1'000 % 10),
      static_cast<long long>(found->use_apart_ppm / 10'000),
      static_cast<long long>(found->use_apart_ppm / 1'000 % 10),
      static_cast<long long>(seen.finished), days * 15, static_cast<long long>(seen.short_of),
      static_cast<long long>(seen.samples));
}

TEST(Scenario, S5_FewerThanTheAssessmentSaysAreTooFew) {
  const Seen seen = shared_by(6);
  EXPECT_GT(seen.short_of, 0) << "the peak of inference needs seven";
}

}  // namespace
}  // namespace neap::sim::sharing_test
