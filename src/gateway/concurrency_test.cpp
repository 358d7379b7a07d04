// E1: the places of a replica start few, rise on evidence and fall at once.
#include "gateway/concurrency.h"

#include <gtest/gtest.h>

#include "gateway/service_rate.h"

namespace neap::gateway::concurrency_test {
namespace {

Time at(std::int64_t s) { return Time(0) + seconds(s); }

const ConcurrencyBounds bounds{.least = 1, .most = 64, .target = milliseconds(200)};

ConcurrencyEvidence seen(std::int64_t s, Micros p95) {
  return {.at = at(s), .queue = true, .full = true, .answers = 20, .first_byte_p95 = p95};
}

TEST(Concurrency, E1_StartsFewAndDoublesOnEvidence) {
  ConcurrencyControl control(bounds);
  EXPECT_EQ(control.limit(), 1);
  for (int s = 1; s <= 4; ++s) control.look(seen(s, milliseconds(50)));
  EXPECT_EQ(control.limit(), 16);
  for (int s = 5; s <= 9; ++s) control.look(seen(s, milliseconds(50)));
  EXPECT_EQ(control.limit(), 64);  // never above what was declared
}

TEST(Concurrency, E1_RisesOnlyOnEvidence) {
  ConcurrencyControl control(bounds);
  ConcurrencyEvidence one = seen(1, milliseconds(50));
  one.queue = false;
  control.look(one);
  one = seen(2, milliseconds(50));
  one.full = false;
  control.look(one);
  one = seen(3, milliseconds(50));
  one.answers = 2;
  control.look(one);
  one = seen(4, milliseconds(50));
  one.first_byte_p95.reset();
  control.look(one);
  control.look(seen(5, milliseconds(190)));  // within the target, and not well within
  EXPECT_EQ(control.limit(), 1);
}

TEST(Concurrency, E1_FallsAtOnceAndRisesSlowlyThen) {
  ConcurrencyControl control(bounds);
  control.resume(32);
  EXPECT_EQ(control.limit(), 32);
  control.look(seen(1, milliseconds(250)));
  EXPECT_EQ(control.limit(), 24);
  control.look(seen(2, milliseconds(250)));  // may be of those who were sent before
  EXPECT_EQ(control.limit(), 24);
  control.look(seen(3, milliseconds(900)));  // this is no echo
  EXPECT_EQ(control.limit(), 18);
  control.look(seen(4, milliseconds(50)));
  EXPECT_EQ(control.limit(), 18);
  control.look(seen(9, milliseconds(50)));
  EXPECT_EQ(control.limit(), 20);
}

TEST(Concurrency, E1_WithoutATargetTheDeclaredNumberIsTheLimit) {
  ConcurrencyControl control({.least = 1, .most = 8});
  EXPECT_EQ(control.limit(), 8);
  control.look(seen(1, seconds(9)));
  EXPECT_EQ(control.limit(), 8);
  control.rebound({.least = 1, .most = 4});
  EXPECT_EQ(control.limit(), 4);
}

TEST(ServiceRate, E1_FallsAtOnceAndRecoversFivePercentInTenSeconds) {
  ServiceRate rate;
  rate.measure(at(0), 4, milliseconds(100));
  EXPECT_DOUBLE_EQ(rate.per_second(), 40);
  rate.measure(at(1), 4, milliseconds(200));
  EXPECT_DOUBLE_EQ(rate.per_second(), 20);
  rate.measure(at(11), 4, milliseconds(100));
  EXPECT_NEAR(rate.per_second(), 21, 1e-6);
  rate.measure(at(12), 8, {});  // a second replica; nothing was answered
  EXPECT_NEAR(rate.per_second(), 42, 1e-6);
  rate.measure(at(13), 0, {});
  EXPECT_DOUBLE_EQ(rate.per_second(), 0);
}

TEST(ServiceRate, NothingIsKnownBeforeTheFirstAnswer) {
  ServiceRate rate;
  rate.measure(at(0), 4, {});
  EXPECT_DOUBLE_EQ(rate.per_second(), 0);
}

}  // namespace
}  // namespace neap::gateway::concurrency_test
