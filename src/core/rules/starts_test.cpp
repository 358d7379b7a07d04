#include "core/rules/starts.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/script.h"

namespace neap::starts_test {
namespace {

using testing::Script;

Script pool_with(StartsSpec starts, int devices = 16) {
  Script s;
  s.spec.starts = starts;
  s.configure();
  s.node("n0", "d0", devices);
  return s;
}

void step_done(Script& s, const std::string& name) {
  const TaskState& t = s.task(name);
  ASSERT_TRUE(s.event(
      StepsReported{.stamp = {t.allocation, 1, t.report_epoch == 0 ? 1 : t.report_sequence + 1},
                    .last = 1,
                    .count = 1,
                    .busy = seconds(1)}));
}

TEST(Starts, D11_AtMostSoManyLoadAtOnceAndTheNextBeginsWithAFirstStep) {
  Script s = pool_with({.at_once = 2});
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(s.submit(Script::training(name)));
  EXPECT_EQ(s.where("a"), "starting n0:0");
  EXPECT_EQ(s.task("b").phase, Phase::starting);
  EXPECT_EQ(s.where("c"), "waiting starts");
  EXPECT_NE(explain_wait(s.state, s.task("c")).find("2 tasks load their data now"),
            std::string::npos);
  s.started("a");
  EXPECT_EQ(s.where("c"), "waiting starts") << "a process that runs has loaded nothing yet";
  s.pass(seconds(5));
  step_done(s, "a");
  EXPECT_EQ(s.task("c").phase, Phase::starting);
  EXPECT_TRUE(index_is_current(s.state));
}

TEST(Starts, D11_OneThatSaysNothingCountsAsLoadedAfterItsTime) {
  Script s = pool_with({.at_once = 1, .loading = minutes(2)});
  ASSERT_TRUE(s.submit(Script::training("a")));
  ASSERT_TRUE(s.submit(Script::training("b")));
  s.pass(seconds(119));
  EXPECT_EQ(s.where("b"), "waiting starts");
  s.pass(seconds(1));
  EXPECT_EQ(s.task("b").phase, Phase::starting);
}

TEST(Starts, D11_StartsKeepTheirDistance) {
  Script s = pool_with({.apart = seconds(10)});
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(s.submit(Script::training(name)));
  EXPECT_EQ(s.task("a").phase, Phase::starting);
  EXPECT_EQ(s.where("b"), "waiting starts");
  EXPECT_NE(explain_wait(s.state, s.task("b")).find("in 10 s (starts.apart)"), std::string::npos);
  s.pass(seconds(10));
  EXPECT_EQ(s.task("b").phase, Phase::starting);
  EXPECT_EQ(s.where("c"), "waiting starts");
  s.pass(seconds(10));
  EXPECT_EQ((s.task("c").placed_at - s.task("a").placed_at).value, seconds(20).value);
}

TEST(Starts, D11_AGangCountsAsOneAndInferenceIsNeverHeldBack) {
  Script s = pool_with({.at_once = 1, .apart = seconds(30)}, 12);
  ASSERT_TRUE(s.submit(Script::training("gang", 8)));
  ASSERT_TRUE(s.submit(Script::service("chat", 2, 2)));
  EXPECT_EQ(s.task("gang").phase, Phase::starting);
  EXPECT_EQ(s.task("chat.0").phase, Phase::starting);
  EXPECT_EQ(s.task("chat.1").phase, Phase::starting);
  ASSERT_TRUE(s.submit(Script::training("late")));
  EXPECT_EQ(s.where("late"), "waiting starts");
}

TEST(Starts, D11_WhereNothingIsFreeTheRealReasonIsSaid) {
  Script s = pool_with({.at_once = 1}, 1);
  ASSERT_TRUE(s.submit(Script::training("a")));
  ASSERT_TRUE(s.submit(Script::training("b")));
  EXPECT_EQ(s.where("b"), "waiting whole_devices");
}

TEST(Starts, D11_DevicesThatOthersLeftStayClaimedUntilItMayStart) {
  Script s = pool_with({.at_once = 1, .loading = minutes(30)}, 2);
  s.spec.preempt.protect_min = Micros(0);
  s.configure();
  TaskSpec light = Script::training("light");
  light.contract.restore = seconds(1);
  ASSERT_TRUE(s.submit(light));
  s.started("light");
  s.checkpoint("light");
  s.pass(minutes(20));
  ASSERT_TRUE(s.submit(Script::training("other")));  // loads for half an hour
  s.started("other");
  TaskSpec heavy = Script::training("heavy");
  heavy.tier = "train_deadline_near";
  ASSERT_TRUE(s.submit(heavy));
  ASSERT_EQ(s.where("heavy"), "waiting yield_pending");
  s.exited("light", 75);
  EXPECT_EQ(s.where("heavy"), "waiting starts");
  EXPECT_NE(s.where("light"), "starting n0:0") << "what was left is spoken for";
  s.checkpoint("other");
  EXPECT_EQ(s.task("heavy").phase, Phase::starting);
  EXPECT_TRUE(index_is_current(s.state));
}

// 24 tasks come in one second; each loads for a minute, and then works.
struct Gust {
  std::int64_t most = 0;
  Micros last{0};
};
Gust gust_with(StartsSpec starts) {
  Script s = pool_with(starts, 24);
  const Time begin = s.now;
  for (int i = 0; i < 24; ++i) EXPECT_TRUE(s.submit(Script::training("t" + std::to_string(i))));
  Gust gust;
  for (int second = 0; second < 3'600; ++second) {
    std::int64_t loading = 0;
    std::vector<std::string> loaded;
    s.state.tasks.for_each([&](const TaskState& t) {
      if (!holds_devices(t.phase)) return;
      const Micros since = s.now - t.placed_at;
      gust.last = std::max(gust.last, t.placed_at - begin);
      loading += since < minutes(1) ? 1 : 0;
      if (since == minutes(1)) loaded.push_back(t.spec.name);
    });
    gust.most = std::max(gust.most, loading);
    for (const std::string& name : loaded) {
      s.started(name);
      step_done(s, name);
    }
    s.pass(seconds(1));
  }
  return gust;
}

TEST(Starts, D11_AGustLoadsAFewAtATime) {
  const Gust free = gust_with({});
  const Gust held = gust_with({.at_once = 4});
  EXPECT_EQ(free.most, 24);
  EXPECT_EQ(held.most, 4);
  EXPECT_EQ(held.last, minutes(5));
  std::printf(
      "staggered: %lld load at once without a limit, %lld with one of 4; the last begins "
      "%lld s later\n",
      static_cast<long long>(free.most), static_cast<long long>(held.most),
      static_cast<long long>((held.last - free.last).value / 1'000'000));
}

TEST(Starts, D11_OffByDefault) {
  Script s = pool_with({});
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(s.submit(Script::training(name)));
  EXPECT_EQ(s.task("c").phase, Phase::starting);
  EXPECT_FALSE(s.task("a").loading);
}

}  // namespace
}  // namespace neap::starts_test
