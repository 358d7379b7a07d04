// F1, S5: what sharing would gain, from two recorded curves of use.
#include "simulate/assess/assess.h"

#include <gtest/gtest.h>

#include <vector>

namespace neap::assess {
namespace {

// Devices by hour of a day, for so many days.
UseTrace days(const std::vector<int>& hours_of_day, int count) {
  UseTrace trace{hours(1), {}};
  for (int day = 0; day < count; ++day) {
    for (const int devices : hours_of_day) trace.milli.push_back(devices * 1'000);
  }
  return trace;
}

std::vector<int> flat(int devices) { return std::vector<int>(24, devices); }

// Three devices of training, 20 h of each day; seven of inference with 8 h a day each, most of it
// by day: while training runs.
const std::vector<int> training_day = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
                                       3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0};
const std::vector<int> inference_day = {1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 5, 7,
                                        7, 6, 5, 3, 1, 1, 1, 1, 1, 1, 1, 1};

TEST(Assess, S5_TenDevicesBecomeSevenAndUseRises) {
  AssessSpec spec;
  spec.lead = Micros(0);
  const auto found = assess(spec, days(training_day, 14), days(inference_day, 14));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(found->apart, 10);
  EXPECT_EQ(found->together, 7);
  EXPECT_EQ(found->saved, 3);
  EXPECT_EQ(found->gain, Gain::full) << found->verdict;
  // 60 + 56 of 240 device-hours a day, then of 168.
  EXPECT_EQ(found->use_apart_ppm, 483'333);
  EXPECT_EQ(found->use_together_ppm, 690'476);
  EXPECT_GT(found->longest_delay, Micros(0));
  EXPECT_LT(found->longest_delay, hours(24));
  std::printf("S5 assess: %s; put off by at most %lld h, %lld.%03lld switches a day\n",
              found->verdict.c_str(),
              static_cast<long long>(found->longest_delay.value / hours(1).value),
              static_cast<long long>(found->switches_per_day_milli / 1'000),
              static_cast<long long>(found->switches_per_day_milli % 1'000));
}

TEST(Assess, F1_TwoFlatCurvesGainNothingAndItSaysWhy) {
  const auto found = assess({}, days(flat(5), 7), days(flat(5), 7));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->gain, Gain::none);
  EXPECT_EQ(found->saved, 0);
  EXPECT_NE(found->verdict.find("no gain: inference is flat"), std::string::npos) << found->verdict;
}

TEST(Assess, F1_TrainingThatCannotBeInterruptedGainsOnlyWhereThePeaksAreApart) {
  AssessSpec spec;
  spec.interruptible = Ppm(0);
  spec.reserve = Ppm(0);
  spec.lead = Micros(0);
  std::vector<int> by_day(24, 0), by_night(24, 0);
  for (int h = 0; h < 24; ++h) (h >= 8 && h < 20 ? by_day : by_night)[static_cast<size_t>(h)] = 4;
  const auto coincide = assess(spec, days(by_day, 3), days(by_day, 3));
  ASSERT_TRUE(coincide.has_value());
  EXPECT_EQ(coincide->complementary_ppm, 0);
  EXPECT_EQ(coincide->gain, Gain::none);
  EXPECT_NE(coincide->verdict.find("may be interrupted"), std::string::npos);
  const auto apart = assess(spec, days(by_night, 3), days(by_day, 3));
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->complementary_ppm, 1'000'000);
  EXPECT_EQ(apart->saved, 4);
  EXPECT_EQ(apart->gain, Gain::limited) << "less than half may be interrupted: " << apart->verdict;
}

TEST(Assess, F1_CoincidentPeaksGainNothingWhereWorkMayNotBePutOff) {
  AssessSpec spec;
  spec.most_delay = hours(1);
  spec.reserve = Ppm(0);
  spec.lead = Micros(0);
  std::vector<int> by_day(24, 0);
  for (std::size_t h = 8; h < 20; ++h) by_day[h] = 4;
  const auto found = assess(spec, days(by_day, 3), days(by_day, 3));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->gain, Gain::none);
  EXPECT_NE(found->verdict.find("peak at the same hours"), std::string::npos) << found->verdict;
  spec.most_delay = hours(24);
  spec.switch_cost = Micros(0);
  const auto patient = assess(spec, days(by_day, 3), days(by_day, 3));
  EXPECT_EQ(patient->saved, 4) << "by night there is room for all of it";
}

TEST(Assess, F1_SwitchesThatCostMoreThanTheyGiveAreNoGain) {
  // Every other hour all devices change sides.
  std::vector<int> one(24, 0);
  for (std::size_t h = 0; h < 24; h += 2) one[h] = 8;
  std::vector<int> other(24, 0);
  for (std::size_t h = 1; h < 24; h += 2) other[h] = 8;
  AssessSpec spec;
  spec.reserve = Ppm(0);
  spec.lead = Micros(0);
  spec.switch_cost = minutes(1);
  const auto cheap = assess(spec, days(other, 3), days(one, 3));
  spec.switch_cost = hours(2);
  const auto dear = assess(spec, days(other, 3), days(one, 3));
  ASSERT_TRUE(cheap && dear);
  EXPECT_GT(cheap->saved, 4);
  EXPECT_LT(dear->saved, cheap->saved);
  EXPECT_GT(cheap->switches_per_day_milli, 0);
}

// What a switch costs is work to do again, which rises and falls by itself: no switches of its own.
TEST(Assess, F1_CurvesThatStepOnceADaySwitchOnceADay) {
  UseTrace training{minutes(10), {}}, inference{minutes(10), {}};
  for (int slot = 0; slot < 3 * 144; ++slot) {
    const int hour = slot / 6 % 24;
    training.milli.push_back(hour < 8 ? 3'000 : 1'000);
    inference.milli.push_back(hour < 8 ? 1'000 : 3'000);
  }
  AssessSpec spec;
  spec.lead = Micros(0);
  spec.reserve = Ppm(0);
  const auto found = assess(spec, training, inference);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->switches_per_day_milli, 0);
  EXPECT_LE(found->switches_per_day_milli, 2'000) << "two devices change sides once, and back";
}

TEST(Assess, F1_ADeviceThatMerelyHasNoWorkChangesNoSide) {
  UseTrace training{minutes(10), {}}, inference{minutes(10), {}};
  for (int slot = 0; slot < 3 * 144; ++slot) {
    training.milli.push_back(slot % 2 == 0 ? 2'000 : 0);
    inference.milli.push_back(slot / 6 % 24 == 12 ? 2'000 : 1'000);
  }
  AssessSpec spec;
  spec.lead = Micros(0);
  spec.reserve = Ppm(0);
  const auto found = assess(spec, training, inference);
  ASSERT_TRUE(found.has_value());
  EXPECT_LE(found->switches_per_day_milli, 1'000) << "inference takes one, at noon";
}

TEST(Assess, F1_WhatIsOutOfRangeIsRefusedByField) {
  const UseTrace day = days(flat(2), 1);
  const auto field = [&](const AssessSpec& spec) -> std::string {
    const auto result = assess(spec, day, day);
    return result ? "" : result.error().context;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.training_devices = 1}), "training_devices");
  EXPECT_EQ(field({.inference_devices = -1}), "inference_devices");
  EXPECT_EQ(field({.interruptible = Ppm(1'000'001)}), "interruptible");
  EXPECT_EQ(field({.reserve = Ppm(-1)}), "reserve");
  EXPECT_EQ(field({.lead = hours(25)}), "lead");
  EXPECT_EQ(field({.switch_cost = hours(25)}), "switch_cost");
  EXPECT_EQ(field({.most_delay = Micros(0)}), "most_delay");
  UseTrace fine = day;
  fine.slot = minutes(5);
  EXPECT_EQ(assess({}, day, fine).error().context, "slot");
  UseTrace shorter = day;
  shorter.milli.pop_back();
  EXPECT_EQ(assess({}, day, shorter).error().context, "traces");
}

// ---- use traces ------------------------------------------------------------------------------

Result<UseTrace> read(const std::string& text) {
  return read_use(trace::bytes_of("use.csv", text), minutes(30));
}

TEST(UseTrace, F1_RowsHoldUntilTheNextAndSlotsAreMeans) {
  const auto trace = read("time,devices\n1000,2\n2800,4\n3700,0\n6400,1\n");
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  // 0-1800 s: 2; to 3600: half at 4, half at 0; then 0, and the last row as long as the one before.
  EXPECT_EQ(trace->milli, (std::vector<std::int64_t>{2'000, 2'000, 0, 1'000}));
}

TEST(UseTrace, F1_WrongRowsAreSaidWithTheirLine) {
  const auto said = [](const std::string& text) {
    const auto trace = read(text);
    return trace ? std::string() : to_string(trace.error());
  };
  EXPECT_NE(said("time,gpus\n1,2\n").find("devices"), std::string::npos);
  EXPECT_NE(said("time,devices\n10,2\n10,3\n").find("use.csv:3"), std::string::npos)
      << said("time,devices\n10,2\n10,3\n");
  EXPECT_NE(said("time,devices\n10,two\n20,3\n").find(":2"), std::string::npos);
  EXPECT_NE(said("time,devices\n10,-1\n20,3\n").find(":2"), std::string::npos);
  EXPECT_NE(said("time,devices\n10,1\n400000000,3\n").find("ten years"), std::string::npos);
  EXPECT_NE(said("time,devices\n10,1\n").find("two rows"), std::string::npos);
  EXPECT_NE(said("").find("use.csv"), std::string::npos);
}

}  // namespace
}  // namespace neap::assess
