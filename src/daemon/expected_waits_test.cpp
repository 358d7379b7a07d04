// D6: rules that need a wait read what forecasts said of it.
#include "daemon/expected_waits.h"

#include <gtest/gtest.h>

#include "core/rules/deadline.h"
#include "core/testing/script.h"

namespace neap::daemon {
namespace {

using neap::testing::Script;

TEST(ExpectedWaits, D6_TheLongestMedianOfATierBecomesAnEventAndIsRead) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(s.submit(Script::training(name)));
  forecast::Forecast forecast;
  forecast.made = s.now;
  forecast.draws = 1;
  const Time soon = s.now + minutes(30);
  const Time late = s.now + minutes(90) + seconds(1);
  forecast.starts = {{s.task("b").id, soon, soon, {}}, {s.task("c").id, late, late, {}}};
  const auto changed = ExpectedWaits(s.state).changed_by(forecast);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].tier, "train_normal");
  EXPECT_EQ(changed[0].wait, minutes(91));
  ASSERT_TRUE(s.event(changed[0]));
  EXPECT_EQ(expected_wait(s.state, s.task("b").tier), minutes(91));
  EXPECT_TRUE(ExpectedWaits(s.state).changed_by(forecast).empty()) << "the same again";
  ASSERT_TRUE(s.event(TaskCancelRequested{"b", "user"}));
  ASSERT_TRUE(s.event(TaskCancelRequested{"c", "user"}));
  const auto none = ExpectedWaits(s.state).changed_by({s.now, 1, {}});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].wait, Micros(0));
}

}  // namespace
}  // namespace neap::daemon
