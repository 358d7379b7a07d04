// F2, B7: an hour of normal load, whatever it is drawn as, is diagnosed as quiet and moves nothing;
// a judge that takes busy for fought over is noticed. A resource that is fought over is named.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <random>

#include "measure/diagnosis.h"
#include "measure/ladder.h"

namespace neap::measure {
namespace {

constexpr std::int64_t megabyte = 1'000'000;

class NormalLoad {
 public:
  explicit NormalLoad(std::uint32_t seed) : random_(seed) {
    alone_.speed.inter_token_p50 = Micros(drawn(1'500, 30'000));
    alone_.speed.first_byte_p50 = Micros(drawn(5'000, 200'000));
    alone_.speed.first_byte_p99 = *alone_.speed.first_byte_p50 * 3;
    alone_.speed.requests_milli_per_s = drawn(1'000, 50'000);
    alone_.machine.disk_await = Micros(drawn(100, 2'000));
  }
  [[nodiscard]] const Alone& alone() const { return alone_; }

  // Training fills the processors and the devices, a checkpoint now and then fills the disk for
  // seconds; the service goes on as before, give or take a fifth; some signals are not there.
  Signals window() {
    Signals s;
    s.speed.inter_token_p50 = near(*alone_.speed.inter_token_p50);
    s.speed.first_byte_p50 = near(*alone_.speed.first_byte_p50);
    s.speed.first_byte_p99 = near(*alone_.speed.first_byte_p99) * drawn(1, 4);
    s.speed.requests_milli_per_s = *alone_.speed.requests_milli_per_s * drawn(50, 140) / 100;
    // Checkpoints are minutes apart; none lasts for two windows.
    const bool checkpoint = ++since_checkpoint_ > 10 && drawn(0, 9) == 0;
    if (checkpoint) since_checkpoint_ = 0;
    if (checkpoint && drawn(0, 1) == 0) {  // and the service feels it, for one window
      s.speed.first_byte_p50 = *s.speed.first_byte_p50 * 2;
    }
    s.use = {.cpu_milli = drawn(100, 1'000),
             .cpu_wait = Ppm(drawn(0, 150'000)),
             .memory_bytes = drawn(100, 2'000) * megabyte,
             .major_faults_milli_per_s = drawn(0, 3'000),
             .io_bytes_per_s = drawn(0, 5) * megabyte,
             .io_wait = Ppm(checkpoint ? drawn(0, 400'000) : drawn(0, 50'000))};
    s.machine = {
        .processors_milli = 2'000,
        .cpu_busy = Ppm(drawn(300'000, 1'000'000)),
        .cpu_pressure = Ppm(drawn(0, 800'000)),
        .memory_pressure = Ppm(drawn(0, 20'000)),
        .io_pressure = Ppm(checkpoint ? drawn(0, 900'000) : drawn(0, 100'000)),
        .memory_available = Ppm(drawn(100'000, 900'000)),
        .disk_busy = Ppm(checkpoint ? 1'000'000 : drawn(0, 300'000)),
        .disk_await = Micros(alone_.machine.disk_await->value * drawn(1, checkpoint ? 9 : 2)),
        .device_compute = Ppm(drawn(300'000, 1'000'000))};
    s.neighbours = {{"train",
                     {.cpu_milli = drawn(200, 1'900),
                      .memory_bytes = drawn(100, 4'000) * megabyte,
                      .io_bytes_per_s = (checkpoint ? drawn(50, 500) : drawn(0, 10)) * megabyte,
                      .device_use = Ppm(drawn(300'000, 1'000'000))}}};
    if (drawn(0, 3) == 0) s.use.cpu_wait.reset();
    if (drawn(0, 3) == 0) s.machine.io_pressure.reset();
    if (drawn(0, 3) == 0) s.machine.cpu_busy.reset();
    if (drawn(0, 9) == 0) s.speed = {};  // no requests in this window
    return s;
  }

 private:
  std::int64_t drawn(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Micros near(Micros value) { return value * drawn(85, 120) / 100; }

  std::mt19937 random_;
  int since_checkpoint_ = 0;
  Alone alone_;
};

using Judge = Diagnosis (*)(const Signals&, const std::optional<Alone>&);

Diagnosis ours(const Signals& s, const std::optional<Alone>& a) { return diagnose(s, a); }

// The planted bug: whoever is not known to be quick counts as slow, and busy as fought over.
Diagnosis busy_is_bad(const Signals& s, const std::optional<Alone>& a) {
  DiagnosisLimits limits;
  limits.slow_milli = 900;
  return diagnose(s, a, limits);
}

struct Hour {
  int alarms = 0;
  int moves = 0;
};

Hour hour_of(std::uint32_t seed, Judge judge) {
  NormalLoad load(seed);
  SteadyDiagnosis steady;
  Ladder ladder;
  Hour out;
  for (int second = 0; second < 3'600; second += 5) {
    const Diagnosis& held = steady.add(judge(load.window(), load.alone()));
    if (held.resource != Resource::none) ++out.alarms;
    if (const auto move = ladder.look(Time(seconds(second).value), held)) {
      ladder.moved(*move);
      ++out.moves;
    }
  }
  return out;
}

RC_GTEST_PROP(DiagnosisProperty, F2_AnHourOfNormalLoadIsQuiet, (std::uint32_t seed)) {
  const Hour hour = hour_of(seed, ours);
  RC_ASSERT(hour.alarms == 0);
  RC_ASSERT(hour.moves == 0);
}

TEST(DiagnosisProperty, F2_AJudgeThatTakesBusyForFoughtOverIsNoticed) {
  int alarms = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) alarms += hour_of(seed, busy_is_bad).alarms;
  EXPECT_GT(alarms, 0);
}

RC_GTEST_PROP(DiagnosisProperty, F2_ContentionIsNamedWhateverElseIsBusy, (std::uint32_t seed)) {
  NormalLoad load(seed);
  Signals s = load.window();
  s.speed.inter_token_p50 = *load.alone().speed.inter_token_p50 * 5;
  s.use.cpu_wait = Ppm(700'000);
  s.use.io_wait = Ppm(0);
  s.use.major_faults_milli_per_s = 0;
  s.machine.disk_await.reset();
  s.machine.cpu_busy = Ppm(990'000);
  s.neighbours[0].use.cpu_milli = 1'800;
  RC_ASSERT(diagnose(s, load.alone()).resource == Resource::cpu);
}

// Taking a signal away never makes a quiet window fought over.
RC_GTEST_PROP(DiagnosisProperty, F2_UnknownSpeaksForNothing, (std::uint32_t seed)) {
  NormalLoad load(seed);
  Signals s = load.window();
  const auto before = diagnose(s, load.alone()).resource;
  RC_PRE(before == Resource::none);
  s.use = {};
  s.machine.cpu_busy.reset();
  s.machine.disk_busy.reset();
  RC_ASSERT(diagnose(s, load.alone()).resource == Resource::none);
}

}  // namespace
}  // namespace neap::measure
