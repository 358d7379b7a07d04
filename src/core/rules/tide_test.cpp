#include "core/rules/tide.h"

#include <gtest/gtest.h>

#include <map>

#include "core/model/pool_index.h"
#include "core/rules/guard.h"
#include "core/rules/place.h"
#include "core/rules/scale.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

// A service of one device a replica, ten requests at once each, in a pool of eight devices.
Script tidal_pool(bool derive = false) {
  Script s;
  s.spec.scale.mode = ScaleMode::tidal;
  s.spec.tide.derive = derive;
  s.configure();
  s.node("n0", "d0", 8);
  EXPECT_TRUE(s.submit(Script::service("chat", 1, 8)));
  return s;
}

void serve_all(Script& s) {
  for (const TaskId id : s.state.services.front().replicas) {
    const TaskState& task = s.state.tasks.at(id);
    if (task.phase == Phase::starting) s.started(task.spec.name);
    if (!s.state.tasks.at(id).ready) s.healthy(task.spec.name);
    if (task.phase == Phase::stopping) s.exited(task.spec.name, 0);
  }
}

// Samples every ten seconds; nothing: metrics are out.
void load(Script& s, std::optional<std::int64_t> in_use, Micros time) {
  for (Micros passed(0); passed < time; passed = passed + seconds(10)) {
    s.pass(seconds(10));
    ASSERT_TRUE(s.event(ServiceMeasured{"chat", in_use}));
    const auto replicas = s.state.services.front().replicas;
    for (const TaskId id : replicas) {
      const std::string name = s.state.tasks.at(id).spec.name;
      if (s.state.tasks.at(id).phase == Phase::starting) s.started(name);
      if (s.state.tasks.at(id).phase == Phase::running && !s.state.tasks.at(id).ready) {
        s.healthy(name);
      }
      if (s.state.tasks.at(id).phase == Phase::stopping) s.exited(name, 0);
    }
  }
}

std::int32_t replicas(const Script& s) {
  return staying_replicas(s.state, s.state.services.front());
}

TEST(Tide, D5_ReplicasFollowTheDemandAtOnceAndLeaveAfterTheDwell) {
  Script s = tidal_pool();
  serve_all(s);
  load(s, 38, seconds(20));
  EXPECT_EQ(replicas(s), 4) << "38 requests and 5 % more on replicas of 10";
  load(s, 39, seconds(20));
  EXPECT_EQ(replicas(s), 5) << "39 and 5 % more are 40.95";
  load(s, 12, minutes(20));
  load(s, 21, seconds(10));
  load(s, 12, minutes(9));
  EXPECT_EQ(replicas(s), 5);
  load(s, 12, minutes(2));
  EXPECT_EQ(replicas(s), 3) << "what was needed meanwhile stays";
  load(s, 12, minutes(31));
  EXPECT_EQ(replicas(s), 2);
}

TEST(Tide, D5_TheRiseOfTheTrendIsExpectedOnceMore) {
  ServiceState service;
  const auto sample = [&](std::int64_t at_s, std::int64_t in_use) {
    service.recent.push_back({Time(0) + seconds(at_s), in_use});
  };
  EXPECT_EQ(expected_rise(service, minutes(3)), 0);
  sample(0, 100);
  EXPECT_EQ(expected_rise(service, minutes(3)), 0) << "one sample has no trend";
  sample(60, 110);
  EXPECT_EQ(expected_rise(service, minutes(3)), 10) << "as far as it is known";
  sample(240, 140);
  EXPECT_EQ(expected_rise(service, minutes(3)), 30) << "since the newest that is a trend old";
  EXPECT_EQ(expected_rise(service, Micros(0)), 0) << "off";
  sample(300, 90);
  EXPECT_EQ(expected_rise(service, minutes(3)), 0) << "it fell";
  service.recent = {{Time(0), 100}, {Time(0) + minutes(12), 220}};
  EXPECT_EQ(expected_rise(service, minutes(3)), 30) << "a quarter of what came in a gap";
}

TEST(Tide, D5_ReplicasAreThereBeforeARiseAndAPartOfThePlanWillDo) {
  Script s;
  s.spec.scale.mode = ScaleMode::tidal;
  s.spec.scale.headroom = Ppm(0);
  s.spec.scale.dwell = minutes(5);
  s.spec.scale.trend = minutes(3);
  s.configure();
  s.node("n0", "d0", 8);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 8)));
  serve_all(s);
  load(s, 20, minutes(5));
  EXPECT_EQ(replicas(s), 2);
  load(s, 30, seconds(10));
  EXPECT_EQ(replicas(s), 4) << "20 to 30: 40 are expected";
  load(s, 30, minutes(4));
  load(s, 30, minutes(6));
  EXPECT_EQ(replicas(s), 3) << "it did not go on";
  EXPECT_LE(s.state.services.front().recent.size(), samples_kept);

  ServiceState& service = s.state.services.front();
  service.curve.closed.assign(24 * 7, 8);
  EXPECT_EQ(tidal_target(s.state, service, s.now), 8);
  s.state.spec.scale.plan = Ppm(700'000);
  EXPECT_EQ(tidal_target(s.state, service, s.now), 6) << "seven tenths of 8, rounded up";
}

// Two nodes of four are lent: enough for the service at its largest, so it never takes a device of
// the core; and it leaves from the node with the fewest of it, which becomes free as a whole.
TEST(Tide, D8_InferenceStaysTogetherInItsRegion) {
  Script s;
  s.spec.scale.mode = ScaleMode::tidal;
  s.spec.scale.headroom = Ppm(0);
  s.spec.scale.dwell = minutes(5);
  s.spec.elastic_buffer = 8;
  s.configure();
  for (const char* name : {"n0", "n1", "n2", "n3"}) s.node(name, "d0", 4);
  ASSERT_TRUE(s.submit(Script::service("chat", 1, 8)));
  serve_all(s);
  const auto nodes = [&] {
    std::map<NodeId, int> counts;
    for (const TaskId id : s.state.services.front().replicas) {
      const TaskState& task = s.state.tasks.at(id);
      if (!holds_devices(task.phase)) continue;
      EXPECT_EQ(s.state.device(task.slots.front().device).role, Role::buffer);
      ++counts[s.state.device(task.slots.front().device).node];
    }
    return counts;
  };
  load(s, 80, seconds(30));
  EXPECT_EQ(replicas(s), 8);
  EXPECT_EQ(nodes().size(), 2U);
  load(s, 40, minutes(6));
  EXPECT_EQ(replicas(s), 4);
  EXPECT_EQ(nodes().size(), 1U) << "one node is free as a whole";

  ASSERT_TRUE(s.submit(Script::service("more", 1, 9)));
  EXPECT_EQ(
      role_stages(s.state, s.state.shape(s.task("more.0").shape)).back() & role_bit(Role::core),
      role_bit(Role::core))
      << "both at their largest need more than is lent";
}

TEST(Tide, S13_UnknownLoadChangesNothing) {
  Script s = tidal_pool();
  serve_all(s);
  load(s, 55, seconds(20));
  EXPECT_EQ(replicas(s), 6);
  load(s, std::nullopt, hours(2));
  EXPECT_EQ(replicas(s), 6);
}

TEST(Tide, D5_TheSameHourOfOtherDaysIsPlannedForOneLeadAhead) {
  DayCurve curve{.hour = 24 * 8, .open = {}, .closed = {}};
  for (std::int64_t hour = 0; hour < 24 * 8; ++hour) {
    const std::int64_t day = hour / 24;
    curve.closed.emplace_back(hour % 24 == 9 ? 10 + day : 1);
  }
  const Time nine(hours(24 * 8 + 9).value);
  EXPECT_EQ(planned_replicas(curve, nine), 14) << "the days had 11 to 17";
  EXPECT_EQ(planned_replicas(curve, Time(hours(24 * 8 + 8).value)), 1);
  curve.closed[24 * 4 + 9].reset();
  EXPECT_EQ(planned_replicas(curve, nine), 15) << "the upper median of six";
  EXPECT_EQ(planned_replicas(DayCurve{}, nine), 0);

  Script s = tidal_pool();
  serve_all(s);
  const std::int64_t midnight = s.now.us / hours(24).value * hours(24).value;
  s.pass(Time(midnight + hours(24 + 8).value) - s.now);
  load(s, 5, seconds(20));
  ServiceState& service = s.state.services.front();
  service.curve.closed.assign(24 * 7, 1);
  for (std::size_t back = 23; back < service.curve.closed.size(); back += 24) {
    service.curve.closed[service.curve.closed.size() - back] = 6;  // at nine
  }
  load(s, 5, minutes(45));
  EXPECT_EQ(replicas(s), 1);
  load(s, 5, minutes(6));
  EXPECT_EQ(replicas(s), 6) << "ten minutes before nine";
}

TEST(Tide, D4_TheDerivedGuardIsLentToReleasableTasksAlone) {
  Script s = tidal_pool(true);
  serve_all(s);
  EXPECT_EQ(lendable_wanted(s.state), 8) << "nothing is known: all may be needed";
  EXPECT_TRUE(s.state.conditions.contains("guard_learning"));
  TaskSpec staying = Script::training("staying");
  staying.contract.on_demand = false;
  staying.contract.interval = hours(6);
  ASSERT_TRUE(s.submit(staying));
  ASSERT_TRUE(s.submit(Script::training("guest")));
  EXPECT_EQ(s.where("staying"), "waiting buffer");
  EXPECT_TRUE(s.where("guest").starts_with("starting")) << s.where("guest");
  load(s, 15, hours(28));
  EXPECT_FALSE(s.state.conditions.contains("guard_learning"));
  EXPECT_LE(lendable_wanted(s.state), 3) << "two devices are needed, and always were";
  EXPECT_TRUE(s.where("staying").starts_with("starting")) << s.where("staying");
  EXPECT_TRUE(index_is_current(s.state));
  const auto copy = decode_snapshot(encode_snapshot(s.state));
  ASSERT_TRUE(copy);
  EXPECT_EQ(hash_of(*copy), hash_of(s.state));
}

TEST(Tide, D4_AnOutageOfMetricsIsNotLearned) {
  Script s = tidal_pool(true);
  serve_all(s);
  load(s, 35, hours(28));
  EXPECT_GE(lendable_wanted(s.state), 4);
  load(s, std::nullopt, hours(3));
  EXPECT_GE(lendable_wanted(s.state), 4);
  load(s, 0, hours(3));
  EXPECT_GE(lendable_wanted(s.state), 4) << "less than a twentieth of the day's median";
  load(s, 10, hours(3));
  EXPECT_LT(lendable_wanted(s.state), 4) << "less demand is learned";
}

TEST(Tide, D4_ThePromotionHoldsDevicesOneLeadBefore) {
  Script s = tidal_pool();
  s.spec.tide.derive = true;
  const Time from = s.now + hours(30);
  s.spec.tide.calendar = {{from, from + hours(2), 6}};
  s.configure();
  serve_all(s);
  load(s, 5, hours(29));
  EXPECT_LE(lendable_wanted(s.state), 3);
  load(s, 5, minutes(56));
  EXPECT_GE(lendable_wanted(s.state), 6);
  load(s, 5, hours(2) + minutes(20));
  EXPECT_LE(lendable_wanted(s.state), 3);
}

TEST(Tide, D2_AShortServiceAsksForWhoCanLeaveAtOnce) {
  Script s = tidal_pool();
  s.spec.elastic_buffer = 7;
  s.configure();
  serve_all(s);
  for (int i = 0; i < 7; ++i) {
    const std::string name = "t" + std::to_string(i);
    ASSERT_TRUE(s.submit(Script::training(name)));
    s.started(name);
  }
  s.work(hours(2));
  ASSERT_TRUE(s.event(ServiceMeasured{"chat", 5}));
  s.work(seconds(5));
  ASSERT_TRUE(s.event(ServiceMeasured{"chat", 15}));
  const auto& plans = s.state.plans;
  ASSERT_EQ(plans.size(), 1U);
  EXPECT_LE(plans.begin()->second.needed_by - s.now, s.spec.preempt.guard_reclaim);
  EXPECT_EQ(plans.begin()->second.victims.front().mode, ReleaseMode::on_demand);
}

}  // namespace
}  // namespace neap
