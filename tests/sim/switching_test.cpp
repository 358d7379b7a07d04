// Switches of devices on simulated machines (SPEC D5): what the engine measures is what the
// machines do, and a budget keeps the time that switches take small while the load is served.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/rules/scale.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"
#include "tests/sim/scenario.h"

namespace neap::sim::switching_test {
namespace {

constexpr int days = 1;

// Devices needed: a day curve, and on it a wave of twenty minutes.
std::int64_t wanted_at(Time at) {
  constexpr std::array<std::int64_t, 24> curve{1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5, 5,
                                               5, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1};
  const std::int64_t hour = at.us / hours(1).value % 24;
  const bool high = at.us / minutes(10).value % 2 == 0;
  return curve[static_cast<std::size_t>(hour)] + (high ? 3 : 0);
}

ServiceSpec slow_service(const std::string& name, Micros load, Micros drain) {
  ServiceSpec service = service_of(name, 1, 8);
  simulated::Behaviour behaviour;
  behaviour.load = load;
  behaviour.drain = drain;
  service.launch = simulated::launch_text(behaviour);
  return service;
}

struct Seen {
  SwitchPrice chat, small;
  std::int64_t given = 0, most_of_day = 0, allowed = 0;
  std::int64_t samples = 0, short_of = 0;
  Micros dwell;
};

Seen run(Ppm budget) {
  PoolSpec pool = pool_with(1, 0);
  pool.scale.mode = ScaleMode::tidal;
  pool.scale.dwell_measured = true;
  pool.scale.plan = Ppm(0);
  pool.scale.switch_budget = budget;
  Site::Options options;
  options.sample_every = seconds(10);
  Stage stage(pool, nodes_of(24, 8), options);
  stage->submit(slow_service("chat", seconds(200), seconds(30)),
                [](Time at) { return std::optional(wanted_at(at) * 9); });
  stage->submit(slow_service("small", seconds(20), seconds(10)),
                [](Time at) { return std::optional(wanted_at(at + minutes(5)) * 9); });
  for (int i = 0; i < 4; ++i) {
    stage->submit(task_of({.name = "job" + std::to_string(i), .length = hours(24 * days)}));
  }
  Seen seen;
  while (stage->now() < Time(hours(24 * days).value)) {
    stage.run_for(minutes(1));
    const ServiceState& chat = *stage->service("chat");
    seen.most_of_day = std::max(seen.most_of_day, switches_of_day(chat, stage->now()));
    const bool settled = stage->now().us % minutes(10).value >= minutes(6).value;
    ++seen.samples;
    if (settled && stage.ready("chat") < wanted_at(stage->now())) ++seen.short_of;
  }
  const ServiceState& chat = *stage->service("chat");
  seen.chat = price_of(stage.state(), chat);
  seen.small = price_of(stage.state(), *stage->service("small"));
  seen.given = chat.switches.given;
  seen.allowed = switches_allowed(stage.state(), chat).value_or(0);
  seen.dwell = dwell_of(stage.state(), chat);
  return seen;
}

TEST(SwitchingScenario, D5_WhatMachinesTakeIsMeasuredAndABudgetKeepsSwitchesFew) {
  const Seen free = run(Ppm(0));
  // The process is there after a second; what it does is told over a network.
  EXPECT_GE(free.chat.load, seconds(200));
  EXPECT_LE(free.chat.load, seconds(205));
  EXPECT_GE(free.chat.leave, seconds(30));
  EXPECT_LE(free.chat.leave, seconds(35));
  EXPECT_LE(free.small.all(), seconds(40)) << "another service, another price";
  EXPECT_GE(free.dwell, free.chat.all());
  EXPECT_GT(free.given, 50);

  const Seen kept = run(Ppm(3'000));
  EXPECT_GT(kept.allowed, 0);
  EXPECT_LE(kept.most_of_day, kept.allowed);
  EXPECT_LT(kept.given, free.given / 2);
  EXPECT_LE(kept.short_of, free.short_of) << "what is asked for is there whatever is left of it";
  std::printf(
      "switches simulated: %lld given away in %d day, %lld with a budget of 0.3 %% (%lld a "
      "day); short in %lld and %lld of %lld minutes\n",
      static_cast<long long>(free.given), days, static_cast<long long>(kept.given),
      static_cast<long long>(kept.allowed), static_cast<long long>(free.short_of),
      static_cast<long long>(kept.short_of), static_cast<long long>(kept.samples));
}

}  // namespace
}  // namespace neap::sim::switching_test
