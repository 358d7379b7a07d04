#include "backend/simulated/random.h"

#include <gtest/gtest.h>

namespace neap::simulated {
namespace {

TEST(Random, SplitMixGivesItsPublishedNumbers) {
  std::uint64_t state = 1234567;
  EXPECT_EQ(split_mix(state), 6457827717110365317U);
  EXPECT_EQ(split_mix(state), 3203168211198807973U);
  EXPECT_EQ(split_mix(state), 9817491932198370423U);
}

TEST(Random, TheSameSeedGivesTheSameNumbers) {
  Random a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t draw = a.next();
    EXPECT_EQ(draw, b.next());
    differs = differs || draw != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, BelowIsEven) {
  Random random(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 60'000; ++i) ++seen[static_cast<std::size_t>(random.below(6))];
  for (const int n : seen) EXPECT_NEAR(n, 10'000, 400);
}

TEST(Random, BetweenMeetsBothEnds) {
  Random random(1);
  bool first = false, last = false;
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t draw = random.between(-3, 3);
    ASSERT_GE(draw, -3);
    ASSERT_LE(draw, 3);
    first = first || draw == -3;
    last = last || draw == 3;
  }
  EXPECT_TRUE(first && last);
}

TEST(Random, ChanceAndWaitHaveTheirMean) {
  Random random(1);
  int hits = 0;
  Micros waited{0};
  for (int i = 0; i < 20'000; ++i) {
    hits += random.chance(Ppm(250'000)) ? 1 : 0;
    waited += random.wait(seconds(60));
  }
  EXPECT_NEAR(hits, 5'000, 250);
  EXPECT_NEAR(static_cast<double>((waited / 20'000).value), 60e6, 2e6);
}

}  // namespace
}  // namespace neap::simulated
