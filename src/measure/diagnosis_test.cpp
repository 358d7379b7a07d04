#include "measure/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace neap::measure {
namespace {

constexpr std::int64_t core = 1'000;
constexpr std::int64_t megabyte = 1'000'000;

// A service beside a trainer, quick as it is alone.
Signals usual() {
  Signals s;
  s.speed.inter_token_p50 = milliseconds(2);
  s.speed.first_byte_p50 = milliseconds(8);
  s.speed.first_byte_p99 = milliseconds(25);
  s.use = {.cpu_milli = 400, .cpu_wait = Ppm(20'000), .memory_bytes = 300 * megabyte};
  s.machine.processors_milli = 2 * core;
  s.machine.cpu_busy = Ppm(950'000);
  s.neighbours = {{"train", {.cpu_milli = 1'500, .memory_bytes = 400 * megabyte}}};
  return s;
}

Alone alone() {
  Alone out;
  out.speed.inter_token_p50 = milliseconds(2);
  out.speed.first_byte_p50 = milliseconds(8);
  out.speed.first_byte_p99 = milliseconds(22);
  out.machine.disk_await = milliseconds(1);
  return out;
}

bool says(const Diagnosis& verdict, const std::string& signal) {
  return std::ranges::any_of(verdict.evidence,
                             [&](const Evidence& one) { return one.signal == signal; });
}

TEST(Diagnosis, F2_FullProcessorsHurtNobodyWhoIsAsFastAsAlone) {
  const Diagnosis verdict = diagnose(usual(), alone());
  EXPECT_EQ(verdict.resource, Resource::none);
  EXPECT_EQ(verdict.slowdown_milli, 1'000);
  EXPECT_GT(verdict.confidence.value, 800'000);
}

TEST(Diagnosis, F2_NamesTheProcessorsAndWhoTakesThem) {
  Signals s = usual();
  s.speed.inter_token_p50 = milliseconds(20);
  s.use.cpu_wait = Ppm(700'000);
  const Diagnosis verdict = diagnose(s, alone());
  EXPECT_EQ(verdict.resource, Resource::cpu);
  EXPECT_EQ(verdict.neighbour, "train");
  EXPECT_EQ(verdict.slowdown_milli, 10'000);
  EXPECT_TRUE(says(verdict, "waits for a processor")) << text_of(verdict.evidence);
  EXPECT_TRUE(says(verdict, "train takes")) << text_of(verdict.evidence);
  EXPECT_GE(verdict.confidence.value, 900'000);
}

TEST(Diagnosis, F2_ManySmallNeighboursCountTogether) {
  Signals s = usual();
  s.speed.inter_token_p50 = milliseconds(20);
  s.use.cpu_wait = Ppm(700'000);
  s.neighbours.clear();
  for (int i = 0; i < 8; ++i) {
    s.neighbours.push_back({"train-" + std::to_string(i), {.cpu_milli = 150 + i}});
  }
  const Diagnosis verdict = diagnose(s, alone());
  EXPECT_EQ(verdict.resource, Resource::cpu);
  EXPECT_EQ(verdict.neighbour, "train-7");
  EXPECT_TRUE(says(verdict, "neighbours take")) << text_of(verdict.evidence);
}

TEST(Diagnosis, F2_MemoryBeforeWhatFollowsFromIt) {
  Signals s = usual();
  s.speed.inter_token_p50 = milliseconds(40);
  s.use.major_faults_milli_per_s = 300'000;
  s.use.io_wait = Ppm(500'000);  // it reads its pages back
  s.machine.memory_pressure = Ppm(400'000);
  s.machine.disk_busy = Ppm(990'000);
  s.neighbours[0].use.memory_bytes = 3'000 * megabyte;
  s.neighbours[0].use.io_bytes_per_s = 50 * megabyte;
  EXPECT_EQ(diagnose(s, alone()).resource, Resource::memory);
}

TEST(Diagnosis, S10_StorageSaturatedWhileComputeIdles) {
  Signals s;  // a trainer whose loading starves; nothing of its speed is known
  s.use = {.cpu_milli = 100, .cpu_wait = Ppm(0), .io_bytes_per_s = 2 * megabyte};
  s.machine = {.processors_milli = 2 * core,
               .cpu_busy = Ppm(200'000),
               .io_pressure = Ppm(850'000),
               .disk_busy = Ppm(1'000'000)};
  s.neighbours = {{"copy", {.cpu_milli = 100, .io_bytes_per_s = 300 * megabyte}}};
  const Diagnosis blind = diagnose(s, {});
  EXPECT_EQ(blind.resource, Resource::storage);
  EXPECT_EQ(blind.neighbour, "copy");

  s.speed.step = milliseconds(900);
  Alone before = alone();
  before.speed.step = milliseconds(300);
  const Diagnosis known = diagnose(s, before);
  EXPECT_EQ(known.resource, Resource::storage);
  EXPECT_GT(known.confidence.value, blind.confidence.value);
}

TEST(Diagnosis, F2_NetworkAndDevices) {
  Signals s = usual();
  s.speed.first_byte_p50 = milliseconds(60);
  s.machine.network_use = Ppm(970'000);
  s.use.sent_bytes_per_s = megabyte;
  s.neighbours[0].use.sent_bytes_per_s = 900 * megabyte;
  s.machine.cpu_busy = Ppm(300'000);
  EXPECT_EQ(diagnose(s, alone()).resource, Resource::network);

  s.machine.network_use = Ppm(10'000);
  s.machine.device_compute = Ppm(990'000);
  s.use.device_use = Ppm(300'000);
  s.neighbours[0].use.device_use = Ppm(690'000);
  EXPECT_EQ(diagnose(s, alone()).resource, Resource::device_compute);

  s.machine.device_compute = Ppm(400'000);
  s.machine.device_memory = Ppm(980'000);
  EXPECT_EQ(diagnose(s, alone()).resource, Resource::device_memory);
}

TEST(Diagnosis, F2_OwnLoadIsNobodyElse) {
  Signals s = usual();
  s.neighbours.clear();
  s.speed.inter_token_p50 = milliseconds(10);
  s.use.cpu_wait = Ppm(600'000);  // its own threads
  EXPECT_EQ(diagnose(s, alone()).resource, Resource::own_load);

  s = usual();  // its own quota, though a neighbour is there
  s.machine.cpu_busy = Ppm(300'000);
  s.neighbours[0].use.cpu_milli = 100;
  s.speed.inter_token_p50 = milliseconds(10);
  s.use.cpu_throttled = Ppm(800'000);
  const Diagnosis verdict = diagnose(s, alone());
  EXPECT_EQ(verdict.resource, Resource::own_load);
  EXPECT_TRUE(says(verdict, "held back by its own quota"));
}

TEST(Diagnosis, F2_UnknownIsNotZero) {
  Signals nothing;
  nothing.neighbours = {{"train", {}}};
  const Diagnosis verdict = diagnose(nothing, {});
  EXPECT_EQ(verdict.resource, Resource::none);
  EXPECT_FALSE(verdict.slowdown_milli);
  EXPECT_LT(verdict.confidence.value, 500'000);
  EXPECT_NE(std::ranges::find(verdict.unknown, "disk busy"), verdict.unknown.end());
  // Known to be low is more than unknown.
  EXPECT_GT(diagnose(usual(), alone()).confidence.value, verdict.confidence.value);
}

TEST(Diagnosis, F2_WithoutABaselineABrokenPromiseCounts) {
  Signals s = usual();
  s.use.cpu_wait = Ppm(300'000);
  s.speed.first_byte_slo = milliseconds(500);
  EXPECT_EQ(diagnose(s, {}).resource, Resource::none);
  s.speed.first_byte_p99 = milliseconds(900);
  EXPECT_EQ(diagnose(s, {}).resource, Resource::cpu);
}

TEST(Diagnosis, F2_OneWindowIsABlip) {
  SteadyDiagnosis steady(3);
  Diagnosis bad;
  bad.resource = Resource::cpu;
  EXPECT_EQ(steady.add(bad).resource, Resource::none);
  EXPECT_EQ(steady.add({}).resource, Resource::none);
  EXPECT_EQ(steady.add(bad).resource, Resource::none);
  EXPECT_EQ(steady.add(bad).resource, Resource::none);
  EXPECT_EQ(steady.add(bad).resource, Resource::cpu);
  EXPECT_EQ(steady.add({}).resource, Resource::cpu);
}

}  // namespace
}  // namespace neap::measure
