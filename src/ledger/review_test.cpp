// D10: each verdict of the weekly review, on made weeks; and what it reads, on a pool that runs.
#include "ledger/review.h"

#include <gtest/gtest.h>

#include "core/testing/script.h"

namespace neap::ledger {
namespace {

using neap::testing::Script;

constexpr std::int64_t week_minutes = 7 * 24 * 60;

WeekFigures quiet_week() {
  WeekFigures week;
  week.minutes = week_minutes;
  week.devices = 64;
  week.needed_milli = 20'000;
  week.needed_p95 = 28;
  week.needed_peak = 30;
  week.trained_milli = 30'000;
  week.guard_idle_ppm = 200'000;
  return week;
}

PoolSpec balanced() {
  PoolSpec spec;
  spec.total_gpus = 64;
  spec.preset = Preset::balanced;
  spec.inference_guard_min = 16;
  spec.elastic_buffer = 16;
  return spec;
}

TEST(Review, D10_RefusesLessThanFiveDaysOfData) {
  WeekFigures week = quiet_week();
  week.minutes = 5 * 24 * 60 - 1;
  const Review found = review(week, balanced());
  EXPECT_EQ(found.verdict, Verdict::too_little_data);
  EXPECT_EQ(found.why, "needs 5 days of data, has 4.9");
  week.minutes = 5 * 24 * 60;
  EXPECT_NE(review(week, balanced()).verdict, Verdict::too_little_data);
}

TEST(Review, D10_NoChangeSaysWhy) {
  const Review calm = review(quiet_week(), balanced());
  EXPECT_EQ(calm.verdict, Verdict::none);
  EXPECT_NE(calm.why.find("had what they needed"), std::string::npos);
  EXPECT_EQ(calm.evidence.size(), 5U);
  WeekFigures busy = quiet_week();
  busy.waiting_milli = 5'000;
  const Review used = review(busy, balanced());
  EXPECT_EQ(used.verdict, Verdict::none);
  EXPECT_NE(used.why.find("the guard was in use"), std::string::npos);
}

TEST(Review, D10_AShortageProposesTheNextPreset) {
  WeekFigures week = quiet_week();
  week.short_minutes = 6;  // of 10,080: above 0.05 %
  const Review found = review(week, balanced());
  EXPECT_EQ(found.verdict, Verdict::more_for_inference);
  EXPECT_EQ(found.preset_next, Preset::inference_led);
  week.short_minutes = 5;
  EXPECT_EQ(review(week, balanced()).verdict, Verdict::none) << "within what is allowed";
}

TEST(Review, D10_WithoutAPresetAShortageProposesGuardAndBuffer) {
  PoolSpec spec = balanced();
  spec.preset = Preset::none;
  WeekFigures week = quiet_week();
  week.needed_peak = 40;
  week.short_minutes = 60;
  const Review found = review(week, spec);
  EXPECT_EQ(found.verdict, Verdict::more_for_inference);
  EXPECT_EQ(found.guard_next + found.buffer_next, 42) << "the peak and 5 %";
  week.needed_peak = 20;
  const Review other = review(week, spec);
  EXPECT_EQ(other.verdict, Verdict::none);
  EXPECT_NE(other.why.find("how fast replicas start"), std::string::npos);
}

TEST(Review, D10_AnIdleGuardWhileTrainingWaitsProposesLess) {
  WeekFigures week = quiet_week();
  week.waiting_milli = 3'000;
  week.guard_idle_ppm = 600'000;
  week.needed_peak = 15;
  const Review found = review(week, balanced());
  EXPECT_EQ(found.verdict, Verdict::more_for_training);
  EXPECT_EQ(found.preset_next, Preset::training_led);
  week.needed_peak = 20;
  const Review kept = review(week, balanced());
  EXPECT_EQ(kept.verdict, Verdict::none);
  EXPECT_NE(kept.why.find("would leave inference 16 devices"), std::string::npos) << kept.why;
  PoolSpec own = balanced();
  own.preset = Preset::none;
  week.needed_peak = 10;
  const Review sizes = review(week, own);
  EXPECT_EQ(sizes.verdict, Verdict::more_for_training);
  EXPECT_EQ(sizes.guard_next, 6);
  EXPECT_EQ(sizes.buffer_next, 5);
}

TEST(Review, D10_AGuardAboveAllThatWasNeededIsTooLargeHoweverItIsUsed) {
  PoolSpec spec = balanced();
  spec.preset = Preset::none;
  spec.inference_guard_min = 40;
  WeekFigures week = quiet_week();
  week.waiting_milli = 2'000;
  week.guard_idle_ppm = 400'000;  // replicas that their load did not need
  const Review found = review(week, spec);
  EXPECT_EQ(found.verdict, Verdict::more_for_training);
  EXPECT_EQ(found.guard_next + found.buffer_next, 32) << "the peak of 30 and 5 %";
}

// A pool that runs for six days: two devices of guard, one replica, and training that fills the
// rest and waits.
TEST(Review, D10_ReadsAWeekOfAPoolThatRuns) {
  Script s;
  s.spec.inference_guard_min = 4;
  s.configure();
  s.node("n0", "d0", 8);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 4)));
  s.started("chat.0");
  s.healthy("chat.0");
  for (int i = 0; i < 7; ++i) {
    TaskSpec task = Script::training("t" + std::to_string(i));
    task.contract = {.signals = true};
    ASSERT_TRUE(s.submit(task));
  }
  for (int i = 0; i < 4; ++i) s.started("t" + std::to_string(i));
  Weeks weeks;
  const Time begin = s.now;
  for (int minute = 0; minute < 6 * 24 * 60; minute += 5) {
    s.pass(minutes(5));
    ASSERT_TRUE(s.event(ServiceMeasured{"chat", 9}));
    weeks.note(s.state);
  }
  const WeekFigures week = figures_of(weeks, begin, s.now + minutes(10));
  EXPECT_NEAR(static_cast<double>(week.minutes), 6 * 24 * 60, 6);
  EXPECT_EQ(week.devices, 8);
  EXPECT_EQ(week.needed_peak, 1);
  EXPECT_EQ(week.needed_milli, 1'000);
  EXPECT_EQ(week.guard_idle_ppm / 1'000, 750) << "three of four guard devices";
  EXPECT_EQ(week.waiting_milli, 3'000);
  const Review found = review(week, s.state.spec);
  EXPECT_EQ(found.verdict, Verdict::more_for_training);
  EXPECT_EQ(found.guard_next, 1);

  Encoder out;
  weeks.encode(out);
  Weeks again;
  Decoder in(out.bytes());
  ASSERT_TRUE(again.decode(in));
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(figures_of(again, begin, s.now + minutes(10)).needed_milli, week.needed_milli);
  Decoder cut(std::string_view(out.bytes()).substr(0, out.bytes().size() / 2));
  EXPECT_FALSE(Weeks().decode(cut));
}

TEST(Review, D10_WhatIsKeptIsBounded) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  Weeks weeks;
  for (int hour = 0; hour < 40 * 24; ++hour) {
    s.pass(hours(1));
    ASSERT_TRUE(s.event(TimerFired{}));
    weeks.note(s.state);
  }
  EXPECT_EQ(weeks.slots().size(), week_slots_kept);
}

}  // namespace
}  // namespace neap::ledger
