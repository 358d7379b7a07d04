#include "core/rules/switching.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/scale.h"
#include "core/rules/tide.h"
#include "core/testing/tides.h"

namespace neap {
namespace {

using testing::Pace;
using testing::Script;
using testing::Tides;

// Services of one device a replica, ten requests at once each, without headroom.
struct Pool {
  Script script;
  Tides tides{script};

  explicit Pool(int devices = 16) {
    script.spec.scale.mode = ScaleMode::tidal;
    script.spec.scale.headroom = script.spec.scale.plan = Ppm(0);
    script.spec.scale.dwell_measured = true;
    devices_ = devices;
  }
  void open() {
    script.configure();
    script.node("n0", "d0", devices_);
  }
  void add(const std::string& name, const Pace& pace, int most = 8) {
    ASSERT_TRUE(script.submit(Script::service(name, 1, most)));
    tides.pace[name] = pace;
    tides.use[name] = 5;
  }
  [[nodiscard]] const ServiceState& service(const std::string& name) const {
    return script.state.service(*find_live_service(script.state, name));
  }
  [[nodiscard]] std::int32_t replicas(const std::string& name) const {
    return staying_replicas(script.state, service(name));
  }
  // The load rises and falls again, so that replicas come and leave.
  void tide(const std::string& name, std::int64_t high, Micros time = minutes(10)) {
    tides.use[name] = high;
    tides.run(time);
    tides.use[name] = 5;
    tides.run(time);
  }

 private:
  int devices_ = 16;
};

TEST(Switching, D5_EachLegIsMeasuredForItsServiceAlone) {
  Pool pool;
  pool.open();
  pool.add("small", {seconds(40), seconds(20), Micros(0)});
  pool.add("large", {minutes(4), seconds(60), seconds(30)});
  const SwitchPrice before = price_of(pool.script.state, pool.service("small"));
  EXPECT_EQ(before.leave, seconds(30)) << "what is expected of a switch that was never seen";
  EXPECT_EQ(before.load, minutes(2));
  EXPECT_EQ(before.all(), seconds(150));
  pool.tide("small", 45);
  pool.tide("large", 35, minutes(15));

  const SwitchPrice small = price_of(pool.script.state, pool.service("small"));
  EXPECT_EQ(small.loaded, 5);
  EXPECT_EQ(small.left, 4);
  EXPECT_EQ(small.load, seconds(40));
  EXPECT_EQ(small.leave, seconds(20));
  EXPECT_EQ(small.warm_up, Micros(0));
  const SwitchPrice large = price_of(pool.script.state, pool.service("large"));
  EXPECT_EQ(large.load, minutes(4));
  EXPECT_EQ(large.leave, seconds(60));
  EXPECT_EQ(large.warm_up, seconds(30));
  EXPECT_EQ(large.all(), seconds(330));
  EXPECT_TRUE(index_is_current(pool.script.state));
  const auto copy = decode_snapshot(encode_snapshot(pool.script.state));
  ASSERT_TRUE(copy);
  EXPECT_EQ(hash_of(*copy), hash_of(pool.script.state));
}

// A warm-up is seen where somebody asks from the beginning on, and no more than can be served.
TEST(Switching, D5_NeitherIdleTimeNorOverloadIsWarmUp) {
  enum class Case : std::uint8_t { asked, idle, overloaded };
  const auto seen_in = [](Case which) {
    Script s;
    s.spec.scale.mode = ScaleMode::tidal;
    s.configure();
    s.node("n0", "d0", 1);
    EXPECT_TRUE(s.submit(Script::service("chat", 1, 4)));
    s.started("chat.0");
    s.pass(seconds(40));
    s.healthy("chat.0");
    const std::int64_t use = which == Case::overloaded ? 500 : 1;
    EXPECT_TRUE(s.event(ServiceMeasured{"chat", use}));
    s.pass(which == Case::idle ? seconds(60) : seconds(10));
    const auto answered = [&](std::int64_t in_time) {
      return s.event(RequestsServed{s.task("chat.0").allocation, 10, in_time, seconds(5)});
    };
    EXPECT_TRUE(answered(4));
    s.pass(seconds(10));
    EXPECT_TRUE(answered(10));
    const auto& costs = s.state.services.front().switches.costs;
    return costs.empty() ? std::vector<std::int64_t>() : costs.back().warm_up.last;
  };
  EXPECT_EQ(seen_in(Case::asked), std::vector<std::int64_t>{seconds(20).value});
  EXPECT_TRUE(seen_in(Case::idle).empty());
  EXPECT_TRUE(seen_in(Case::overloaded).empty());
}

TEST(Switching, D5_WhatIsExpectedCountsUntilThreeWereSeen) {
  Pool pool;
  pool.open();
  pool.add("chat", {seconds(40), seconds(20), Micros(0)});
  pool.tide("chat", 15);
  const SwitchPrice two = price_of(pool.script.state, pool.service("chat"));
  EXPECT_EQ(two.loaded, 2);
  EXPECT_EQ(two.load, minutes(2)) << "two loads do not show that it is cheaper";
  pool.tides.pace["chat"].load = minutes(5);
  pool.tides.use["chat"] = 15;
  pool.tides.run(minutes(10));
  EXPECT_EQ(price_of(pool.script.state, pool.service("chat")).load, minutes(5))
      << "the p90 of three is the greatest";
}

// SPEC C4: the next version is another model, and may load in another time.
TEST(Switching, D5_AVersionStartsFromThePriceOfTheOneBefore) {
  Pool pool;
  pool.open();
  pool.add("chat", {seconds(40), seconds(20), Micros(0)});
  pool.tide("chat", 45);
  ServiceSpec next = pool.service("chat").spec;
  next.launch = "{\"model\":2}";
  pool.tides.pace["chat"] = {minutes(3), seconds(20), Micros(0)};
  ASSERT_TRUE(pool.script.event(ServiceReplaced{next, "x"}));
  const SwitchPrice fresh = price_of(pool.script.state, pool.service("chat"));
  EXPECT_EQ(fresh.loaded, 0);
  EXPECT_EQ(fresh.load, seconds(40));
  pool.tides.run(minutes(10));
  ASSERT_FALSE(pool.service("chat").roll);
  EXPECT_EQ(price_of(pool.script.state, pool.service("chat")).load, minutes(3))
      << "one load that was dearer counts at once";
}

TEST(Switching, D5_DevicesAreGivenAwayOnceTheyHaveIdledForTheBreakEvenTime) {
  Pool pool;
  pool.open();
  pool.add("chat", {seconds(40), seconds(20), Micros(0)});
  pool.tides.run(minutes(5));
  EXPECT_EQ(dwell_of(pool.script.state, pool.service("chat")), seconds(150));
  pool.tide("chat", 45);
  EXPECT_EQ(dwell_of(pool.script.state, pool.service("chat")), seconds(60));
  pool.tides.use["chat"] = 45;
  pool.tides.run(minutes(5));
  pool.tides.use["chat"] = 5;
  pool.tides.run(seconds(60));
  EXPECT_EQ(pool.replicas("chat"), 5) << "not idle for a minute yet";
  pool.tides.run(seconds(20));
  EXPECT_EQ(pool.replicas("chat"), 1);

  pool.script.state.spec.scale.dwell_measured = false;
  pool.script.state.spec.scale.dwell = minutes(30);
  EXPECT_EQ(dwell_of(pool.script.state, pool.service("chat")), minutes(30)) << "as it is set";
}

TEST(Switching, D5_LittleUseOfWhatWasLentMakesDevicesIdleLonger) {
  Pool pool;
  pool.open();
  pool.add("chat", {seconds(40), seconds(20), Micros(0)});
  PoolState& state = pool.script.state;
  constexpr std::int64_t device_hour = std::int64_t{1000} * 3'600'000;
  state.lent = {2 * device_hour, device_hour};
  EXPECT_EQ(useful_lent(state), all_ppm) << "two device-hours say nothing";
  state.lent = {20 * device_hour, 15 * device_hour};
  EXPECT_EQ(useful_lent(state), Ppm(750'000));
  EXPECT_EQ(break_even(state, pool.service("chat")), seconds(200)) << "150 s for 3/4";
  state.lent = {20 * device_hour, 0};
  EXPECT_EQ(useful_lent(state), Ppm(100'000)) << "never less than a tenth";
}

TEST(Switching, D5_WhatTrainingMadeOfLentDevicesIsMeasured) {
  Script s;
  s.spec.elastic_buffer = 4;
  s.configure();
  s.node("n0", "d0", 4);
  ASSERT_TRUE(s.submit(Script::training("guest", 2)));
  s.pass(seconds(100));
  s.started("guest");
  s.pass(seconds(800));
  s.checkpoint("guest");
  s.pass(seconds(100));
  s.exited("guest", 1);
  const std::int64_t both = 2'000;  // milli-GPU
  EXPECT_EQ(s.state.lent.held, both * 1'000'000);
  EXPECT_EQ(s.state.lent.useful, both * 800'000) << "neither its start nor what it lost";
}

TEST(Switching, D5_TheBudgetStopsGivingAwayAndNeverTakingBack) {
  Pool pool;
  pool.script.spec.scale.switch_budget = Ppm(2'000);  // 0.2 % of 8 devices: 1,382 s a day
  pool.open();
  pool.add("chat", {minutes(2), seconds(30), Micros(0)});
  pool.tides.run(minutes(5));
  EXPECT_EQ(switches_allowed(pool.script.state, pool.service("chat")), 9) << "1,382 by 150";
  pool.tide("chat", 75);
  EXPECT_EQ(pool.replicas("chat"), 1);
  EXPECT_EQ(switches_left(pool.script.state, pool.service("chat"), pool.script.now), 2);
  pool.tide("chat", 75);
  EXPECT_EQ(pool.replicas("chat"), 6) << "two of seven were paid for";
  EXPECT_EQ(switches_left(pool.script.state, pool.service("chat"), pool.script.now), 0);
  EXPECT_TRUE(pool.script.state.conditions.contains("switch_budget"));
  pool.tides.use["chat"] = 80;
  pool.tides.run(minutes(5));
  EXPECT_EQ(pool.replicas("chat"), 8) << "the demand is served";
  EXPECT_FALSE(pool.script.state.conditions.contains("switch_budget"));

  const Time again = switches_again_at(pool.script.state, pool.service("chat"), pool.script.now);
  EXPECT_GT(again, pool.script.now + hours(23));
  pool.tides.use["chat"] = 5;
  while (pool.script.now + seconds(10) < again) pool.tides.tick();
  EXPECT_EQ(pool.replicas("chat"), 8);
  pool.tides.run(minutes(1));
  EXPECT_EQ(pool.replicas("chat"), 1) << "a day later";
}

// POLICIES 3: at an hour boundary lend if P(idle >= 1.25 H*) >= 0.8.
TEST(Switching, D5_WhatTheHourSeldomNeedsIsLentAtItsBeginning) {
  Pool pool;
  pool.open();
  pool.add("chat", {minutes(20), seconds(30), Micros(0)});
  pool.tides.use["chat"] = 75;
  const std::int64_t hour = hours(1).value;
  const auto until = [&](std::int64_t past_the_hour) {
    const std::int64_t begin = pool.script.now.us / hour * hour + past_the_hour * 1'000'000;
    while (pool.script.now.us < begin) pool.tides.tick();
  };
  until(3'300);
  EXPECT_EQ(pool.replicas("chat"), 8);
  ServiceState& service = pool.script.state.services.front();
  service.curve.closed.assign(24 * 7, 2);
  pool.tides.use["chat"] = 20;
  until(3'590);
  EXPECT_EQ(pool.replicas("chat"), 8) << "it has idled for less than twenty minutes";
  pool.tides.run(seconds(20));
  EXPECT_EQ(pool.replicas("chat"), 2) << "this hour never needed more";

  // Two days in seven are more than one in five.
  for (const std::size_t day : {1U, 2U}) {
    for (std::size_t h = 0; h < 24; ++h) service.curve.closed[day * 24 + h] = 8;
  }
  EXPECT_EQ(usual_need(service.curve, pool.script.now, pool.script.now, PlanDays::recent), 8);
  for (std::size_t h = 0; h < 48; ++h) service.curve.closed[24 + h] = 2;
  for (std::size_t h = 0; h < 24; ++h) service.curve.closed[24 + h] = 8;
  EXPECT_EQ(usual_need(service.curve, pool.script.now, pool.script.now, PlanDays::recent), 2);
}

// Day 0 of the epoch was a Thursday: 2 and 3 are the weekend.
TEST(Switching, D5_ThePlanCanBeOfTheKindOfDayOrOfTheDayOfTheWeek) {
  const auto curve_of = [](std::int64_t days) {
    DayCurve curve{.hour = 24 * days, .open = {}, .closed = {}};
    for (std::int64_t hour = 0; hour < 24 * days; ++hour) {
      const std::int64_t weekday = (hour / 24 + 3) % 7;
      curve.closed.emplace_back(weekday >= 5 ? 2 : weekday == 0 ? 20 : 10);
    }
    return curve;
  };
  const auto noon_of = [](std::int64_t day) { return Time(hours(24 * day + 12).value); };
  const DayCurve weeks = curve_of(28);  // the next is a Thursday
  EXPECT_EQ(planned_replicas(weeks, noon_of(28)), 10);
  const DayCurve saturday = curve_of(30);
  EXPECT_EQ(planned_replicas(saturday, noon_of(30)), 10) << "five of seven days are working days";
  EXPECT_EQ(planned_replicas(saturday, noon_of(30), PlanDays::kind), 2);
  const DayCurve monday = curve_of(32);
  EXPECT_EQ(planned_replicas(monday, noon_of(32), PlanDays::kind), 10);
  EXPECT_EQ(planned_replicas(monday, noon_of(32), PlanDays::weekday), 20);
  const DayCurve young = curve_of(18);  // a Monday, of which two are known
  EXPECT_EQ(planned_replicas(young, noon_of(18), PlanDays::weekday), 10) << "by its kind";
  const DayCurve first = curve_of(4);  // one weekend is no choice
  EXPECT_EQ(planned_replicas(first, noon_of(9), PlanDays::kind),
            planned_replicas(first, noon_of(9), PlanDays::recent));
}

}  // namespace
}  // namespace neap
