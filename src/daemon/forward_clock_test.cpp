#include "daemon/forward_clock.h"

#include <gtest/gtest.h>

namespace neap::daemon {
namespace {

struct Clocks {
  Time wall{1'000'000};
  Time steady{5};
  ForwardClock clock{[this] { return wall; }, [this] { return steady; }};

  Time pass(Micros time) {
    wall = wall + time;
    steady = steady + time;
    return clock.now();
  }
};

TEST(ForwardClock, IsTheWallsWhileThatGoesForward) {
  Clocks c;
  EXPECT_EQ(c.clock.now(), c.wall);
  EXPECT_EQ(c.pass(seconds(1)), c.wall);
  c.wall = c.wall + hours(5);  // a machine that slept
  EXPECT_EQ(c.clock.now(), c.wall);
}

// G3: a clock that is set back neither turns time round nor stops it.
TEST(ForwardClock, GoesOnWhenTheWallIsSetBack) {
  Clocks c;
  const Time before = c.pass(seconds(1));
  c.wall = c.wall - hours(1);
  EXPECT_EQ(c.clock.now(), before);
  EXPECT_EQ(c.pass(seconds(10)), before + seconds(10));
  EXPECT_EQ(c.pass(hours(2)), before + seconds(10) + hours(2));
  c.wall = c.wall + hours(2);  // set right again
  EXPECT_EQ(c.clock.now(), c.wall);
}

TEST(ForwardClock, ARestartDoesNotGoBehindWhatHasHappened) {
  Clocks c;
  const Time happened = c.wall + hours(24 * 365);
  c.clock.not_before(happened);
  EXPECT_EQ(c.pass(seconds(3)), happened + seconds(3));
}

}  // namespace
}  // namespace neap::daemon
