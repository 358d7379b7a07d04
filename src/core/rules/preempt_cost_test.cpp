// The cost table of POLICIES 1, a line for each of its rows and rules (D2, D3).
#include <gtest/gtest.h>

#include "core/rules/preempt.h"
#include "core/testing/pool_builder.h"

namespace neap {
namespace {

using testing::pool_now;
using testing::pool_of;
using testing::task_named;

constexpr std::string_view node = "node a r1 8 A100 1000 roles=ccccccbb\n";

std::string offer_of(const PoolState& state, Micros within) {
  const TaskState& task = state.tasks.at(task_named(state, "job"));
  const auto offer = cheapest_offer(state, task, pool_now, pool_now + within);
  if (!offer) return "none";
  return std::string(name_of(offer->mode)) + " " +
         std::to_string((offer->release_by - pool_now).value / 1'000'000) + " " +
         std::to_string(offer->cost);
}

struct Row {
  std::string_view why, job;
  int within_s;
  std::string_view expected;  // mode, seconds until released, cost in milli-GPU·µs
};

void expect_rows(const std::vector<Row>& rows, std::string_view beside = "",
                 PreemptSpec preempt = {}) {
  for (const Row& row : rows) {
    PoolState state = pool_of(std::string(node) + std::string(beside) + "task job normal " +
                              std::string(row.job) + "\n");
    state.spec.preempt = preempt;
    EXPECT_EQ(offer_of(state, seconds(row.within_s)), row.expected) << row.why;
  }
}

// 1000 milli held: R 180 s is 0.18e12, the fixed cost 3.6e12, a stall or save of 10 s 0.01e12.
TEST(PreemptCost, D2_ModesAndWhenTheyRelease) {
  expect_rows({
      {"boundary: b + k + τ, one interval after c", "on=a:0", 660, "boundary 555 3790000000000"},
      {"it comes too late", "on=a:0", 554, "none"},
      {"its own interval", "on=a:0 interval=100", 660, "boundary 55 3790000000000"},
      {"a watched directory has boundaries", "on=a:0 contract=watch", 660,
       "boundary 555 3790000000000"},
      {"on demand: s + k + τ", "on=a:0 contract=sdk+ondemand", 20, "on_demand 20 3790000000000"},
      {"on demand, too late", "on=a:0 contract=sdk+ondemand", 19, "none"},
      {"on demand was seen", "on=a:0 ondemand_seen", 30, "on_demand 20 3790000000000"},
      {"at equal cost the boundary", "on=a:0 contract=sdk+ondemand", 660,
       "boundary 555 3790000000000"},
      {"a short stall makes the boundary cheaper", "on=a:0 contract=sdk+ondemand stall=2", 660,
       "boundary 555 3782000000000"},
      {"a short save makes on demand cheaper", "on=a:0 contract=sdk+ondemand save=2", 660,
       "on_demand 12 3782000000000"},
      {"signals alone checkpoint on SIGTERM", "on=a:0 contract=signals", 660,
       "on_demand 20 3790000000000"},
      {"signals beside the SDK do not", "on=a:0 contract=sdk+signals", 30, "none"},
      {"without a contract nothing to wait for", "on=a:0 contract=none", 660, "none"},
  });
}

TEST(PreemptCost, D2_WhoRestoresIsNotAskedBeforeItCanAnswer) {
  std::string pool(node);
  pool += "task job normal on=a:0 contract=sdk+ondemand\n";
  PoolState state = pool_of(pool);
  TaskState& task = state.tasks.at(task_named(state, "job"));
  task.started_at = task.captured = pool_now - seconds(60);
  task.first_started = task.started_at;
  state.spec.preempt.protect_min = Micros(0);
  task.spec.contract.restore = seconds(100);
  task.releasable = true;
  state.devices.front().role = Role::buffer;
  EXPECT_TRUE(offer_of(state, seconds(30)).starts_with("on_demand 20 ")) << "its first start";
  task.first_started = pool_now - hours(5);
  EXPECT_EQ(offer_of(state, seconds(30)), "none") << "40 s until it has restored, then 20";
  EXPECT_TRUE(offer_of(state, seconds(60)).starts_with("on_demand 60 "));
  task.started_at = pool_now - seconds(100);
  EXPECT_TRUE(offer_of(state, seconds(30)).starts_with("on_demand 20 "));
}

TEST(PreemptCost, D2_LateCheckpoints) {
  expect_rows({
      {"being saved now", "on=a:0 captured=-605", 660, "boundary 10 3790000000000"},
      {"missed: the next of the rhythm", "on=a:0 captured=-650", 660, "boundary 565 3790000000000"},
      {"missed twice", "on=a:0 captured=-1250", 660, "boundary 565 3790000000000"},
  });
}

TEST(PreemptCost, D3_NearlyDoneIsNotPreempted) {
  expect_rows({
      {"W <= R: only finish", "on=a:0 work=36100", 660, "finish 100 0"},
      {"W = R: only finish", "on=a:0 work=36180", 170, "none"},
      {"W <= R, even on demand", "on=a:0 contract=sdk+ondemand work=36100", 60, "none"},
      {"past its work: the declaration says nothing any more", "on=a:0 work=30000", 660,
       "boundary 555 3790000000000"},
      {"W > R, and it ends in time", "on=a:0 work=36600", 660, "finish 600 0"},
      {"W > R, and it does not", "on=a:0 work=37000", 660, "boundary 555 3790000000000"},
      {"protected tasks may finish", "on=a:0 started=-100 work=500", 660, "finish 400 0"},
  });
}

TEST(PreemptCost, D2_WhatRestartingCosts) {
  expect_rows({
      {"six devices", "on=a:0-5", 660, "boundary 555 4740000000000"},
      {"measured before declared", "on=a:0 seen_save=20 seen_stall=3 seen_restore=60", 660,
       "boundary 565 3663000000000"},
      {"preempted twice: w g R (2^2 - 1)", "on=a:0 preemptions=2", 660,
       "boundary 555 4006000000000"},
      {"no more than five count", "on=a:0 preemptions=9", 660, "boundary 555 6022000000000"},
      {"the deadline is kept", "on=a:0 deadline=180", 660, "boundary 555 3790000000000"},
      {"the deadline would be missed", "on=a:0 deadline=179", 660,
       "boundary 555 4611686018427387904"},
      {"with what remains of its work", "on=a:0 work=37000 deadline=1179", 660,
       "boundary 555 4611686018427387904"},
  });
  PreemptSpec free;
  free.fixed_cost = 0;
  expect_rows({{"no fixed cost", "on=a:0", 660, "boundary 555 190000000000"},
               {"never below nothing", "on=a:0 share=100 memory=10", 660, "boundary 555 0"}},
              "", free);
}

TEST(PreemptCost, D2_AFractionAloneOnADeviceFreesTheRest) {
  const Row alone{"700 milli are stranded beside it", "on=a:0 share=300 memory=10", 660,
                  "boundary 555 3237000000000"};
  const Row shared{"beside another nothing becomes whole", "on=a:0 share=300 memory=10", 660,
                   "boundary 555 3657000000000"};
  expect_rows({alone});
  expect_rows({shared}, "task other normal on=a:0 share=300 memory=10\n");
}

TEST(PreemptCost, D2_KillingNeedsBreakGlass) {
  PreemptSpec spec;
  expect_rows({{"never by default", "on=a:0 contract=none", 660, "none"}}, "", spec);
  spec.only_at_checkpoint = false;
  expect_rows({{"nor by this alone", "on=a:0 contract=none", 660, "none"}}, "", spec);
  spec = {};
  spec.break_glass = true;
  expect_rows(
      {
          {"at once; 60 s of work are lost", "on=a:0 contract=none", 5, "kill 5 3840000000000"},
          {"at most one interval", "on=a:0 contract=none captured=-600", 5, "kill 5 4380000000000"},
          {"not more", "on=a:0 contract=none captured=-601", 660, "none"},
          {"of its own", "on=a:0 contract=none interval=30", 660, "none"},
          {"a boundary is cheaper", "on=a:0", 660, "boundary 555 3790000000000"},
          {"not what is nearly done", "on=a:0 work=36100", 60, "none"},
          {"not what is protected", "on=a:0 started=-100", 60, "none"},
      },
      "", spec);
}

TEST(PreemptCost, D3_Protection) {
  expect_rows({
      {"P_min after its start", "on=a:0 started=-1799 captured=-60", 660, "none"},
      {"and no longer", "on=a:0 started=-1800 captured=-60", 660, "boundary 555 3790000000000"},
      {"9 R after its start", "on=a:0 restore=300 started=-2699", 660, "none"},
      {"and no longer (9 R)", "on=a:0 restore=300 started=-2700", 660,
       "boundary 555 3910000000000"},
      {"a declared window", "on=a:0 window=0-3600", 660, "none"},
      {"over midnight", "on=a:0 window=80000-100", 660, "none"},
      {"not yet", "on=a:0 window=3600-7200", 660, "boundary 555 3790000000000"},
      {"it is over", "on=a:0 window=80000-0", 660, "boundary 555 3790000000000"},
      {"the boundary falls into it", "on=a:0 window=400-800", 660, "none"},
      {"but now is outside", "on=a:0 window=400-800 contract=sdk+ondemand", 660,
       "on_demand 20 3790000000000"},
      {"its budget of the day is spent", "on=a:0 today=4", 660, "none"},
      {"one is left", "on=a:0 today=3", 660, "boundary 555 3790000000000"},
  });
}

// S4: and are given back for half of the fixed price.
TEST(PreemptCost, D4_LendableDevicesCarryNoProtection) {
  expect_rows({
      {"after its start", "on=a:6 started=-100 captured=-60", 660, "boundary 555 1990000000000"},
      {"in its window", "on=a:7 window=0-3600", 660, "boundary 555 1990000000000"},
      {"past its budget", "on=a:7 today=9", 660, "boundary 555 1990000000000"},
      {"partly there is there", "on=a:5,a:6 today=9", 660, "boundary 555 2180000000000"},
      {"W <= R holds there too", "on=a:6 work=36100", 90, "none"},
  });
}

TEST(PreemptCost, D1_WhoMayBeTakenFromByWhom) {
  struct Line {
    std::string_view why, job, demand;
    bool expected;
  };
  const std::vector<Line> lines{
      {"a lower tier", "normal on=a:0", "near", true},
      {"not its own", "near on=a:0", "near", false},
      {"not a higher one", "near on=a:0", "normal", false},
      {"interactive for inference", "talk on=a:0", "infer", true},
      {"interactive for nobody else", "talk on=a:0", "rush", false},
      {"inference for nobody", "serve on=a:0", "infer", false},
      {"not interruptible", "normal on=a:0 interruptible=0", "infer", false},
      {"yields already", "normal on=a:0 phase=yielding", "infer", false},
      {"stops already", "normal on=a:0 phase=stopping", "infer", false},
      {"has not started", "normal on=a:0 phase=starting", "infer", false},
  };
  for (const Line& line : lines) {
    const PoolState state = pool_of(
        "tier infer 100 inference\ntier rush 95 batch\ntier talk 90 interactive\n"
        "tier near 80 batch\ntier serve 60 inference\ntier normal 40 batch\n" +
        std::string(node) + "task job " + std::string(line.job) + "\n");
    EXPECT_EQ(is_candidate(state, state.tasks.at(task_named(state, "job")),
                           testing::demand_of(state, line.demand)),
              line.expected)
        << line.why;
  }
}

}  // namespace
}  // namespace neap
