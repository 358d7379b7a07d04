// Which tasks yield for a demand, and where it goes: pools in, victims and devices out.
#include "core/rules/preempt.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/preempt_cover.h"
#include "core/testing/pool_builder.h"
#include "core/testing/victim_oracle.h"

namespace neap::preempt_test {
namespace {

using testing::demand_of;
using testing::pool_now;
using testing::pool_of;
using testing::task_named;

// "job1/boundary job2/finish -> a:0 a:1", or "nothing".
std::string victims_for(PoolState& state, std::string_view demand, Micros within = seconds(660)) {
  const auto found = find_victims(state, demand_of(state, demand), pool_now, pool_now + within);
  if (!found) return "nothing";
  EXPECT_EQ(found->lower_bound, found->cost);
  std::string out;
  for (const Victim& victim : found->victims) {
    out += state.tasks.at(victim.task).spec.name + "/" + std::string(name_of(victim.mode)) + " ";
  }
  out += "->";
  for (const Slot& slot : found->slots) {
    const DeviceState& device = state.device(slot.device);
    out += " " + state.node(device.node).name + ":" + std::to_string(device.index);
  }
  return out;
}

struct Line {
  std::string_view why, demand, expected;
};

void expect_lines(std::string_view pool, const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    PoolState state = pool_of(pool);
    EXPECT_EQ(victims_for(state, line.demand), line.expected) << line.why;
  }
}

TEST(Preempt, D2_TheCheapestVictims) {
  expect_lines(
      "node a r1 4 A100 1000\n"
      "node b r1 4 A100 1000\n"
      "task a0 normal on=a:0 preemptions=1\n"
      "task a1 normal on=a:1 preemptions=2\n"
      "task a2 normal on=a:2\n"
      "task b0 normal on=b:0\n"
      "task b1 normal on=b:1-3\n",
      {
          {"a device is free", "infer count=1", "-> a:3"},
          {"free devices before victims", "infer count=2", "a2/boundary -> a:2 a:3"},
          {"one of three devices, or two: the fixed cost decides", "infer count=3",
           "b1/boundary -> b:1 b:2 b:3"},
          {"a whole node", "infer count=4", "b0/boundary b1/boundary -> b:0 b:1 b:2 b:3"},
          {"two nodes", "infer count=8",
           "a0/boundary a1/boundary a2/boundary b0/boundary b1/boundary -> "
           "a:0 a:1 a:2 a:3 b:0 b:1 b:2 b:3"},
          {"there are no nine", "infer count=9", "nothing"},
      });
}

TEST(Preempt, D2_EqualCostsGoByNode) {
  expect_lines(
      "node a r1 1 A100 1000\nnode b r1 1 A100 1000\n"
      "task b0 normal on=b:0\ntask a0 normal on=a:0\n",
      {{"the smaller node", "infer", "a0/boundary -> a:0"}});
}

TEST(Preempt, D2_PerDeviceNotByTotals) {
  expect_lines(
      "node a r1 2 A100 1000\n"
      "task a0 normal on=a:0 share=500 memory=400\n"
      "task a1 normal on=a:1 share=500 memory=400\n"
      "task big near on=a:0,a:1 share=400 memory=100\n",
      {
          {"600 milli are free on no device, though 200 are in all", "infer share=500",
           "a0/boundary -> a:0"},
          {"both a device's tenants for a whole one", "infer", "a0/boundary big/boundary -> a:0"},
          {"what serves two devices is paid once", "infer count=2",
           "a0/boundary a1/boundary big/boundary -> a:0 a:1"},
          {"near takes nothing of its own tier", "near count=1", "nothing"},
      });
}

TEST(Preempt, S2_MemoryMayBeWhatIsShort) {
  expect_lines(
      "node a r1 1 A100 1000\n"
      "task thin normal on=a:0 share=500 memory=100\n"
      "task fat normal on=a:0 share=100 memory=700\n",
      {{"share is there, memory is not", "infer share=100 memory=400", "fat/boundary -> a:0"},
       {"memory is there, share is not", "infer share=600 memory=200", "thin/boundary -> a:0"}});
}

TEST(Preempt, A6_StrangersLeaveTogether) {
  expect_lines(
      "node a r1 2 A100 1000\n"
      "task x1 normal on=a:0 share=100 trust=x\n"
      "task x2 normal on=a:0 share=100 trust=x\n"
      "task y1 normal on=a:1 share=900 trust=y interruptible=0\n",
      {{"there is room on both devices, beside strangers", "infer share=100 trust=z",
        "x1/boundary x2/boundary -> a:0"},
       {"beside its own", "infer share=100 trust=y", "-> a:1"},
       {"beside its own, fuller", "infer share=900 trust=x", "x1/boundary -> a:0"},
       {"it may not go to its own", "infer share=200 trust=y", "x1/boundary x2/boundary -> a:0"}});
}

TEST(Preempt, D4_GuardDevicesAreForInferenceAlone) {
  expect_lines(
      "node a r1 3 A100 1000 roles=cbg\n"
      "task core normal on=a:0 preemptions=3\n"
      "task lent normal on=a:1 preemptions=1\n"
      "task left normal on=a:2\n",
      {
          {"training takes the core", "near", "core/boundary -> a:0"},
          {"or what is lendable, if it can be released", "near releasable", "lent/boundary -> a:1"},
          {"never the guard", "near count=3 releasable", "nothing"},
          {"inference takes what was lent before others yield (S4)", "infer",
           "lent/boundary -> a:1"},
          {"before the core", "infer count=2", "lent/boundary left/boundary -> a:1 a:2"},
          {"of all roles", "infer count=3",
           "core/boundary lent/boundary left/boundary -> a:0 a:1 a:2"},
      });
}

TEST(Preempt, D1_InteractiveYieldsToInferenceOnly) {
  expect_lines(
      "tier infer 100 inference\ntier rush 95 batch\ntier talk 90 interactive\n"
      "node a r1 1 A100 1000\ntask talks talk on=a:0\n",
      {{"to inference", "infer", "talks/boundary -> a:0"}, {"to no other", "rush", "nothing"}});
}

TEST(Preempt, D3_FinishingCostsNothing) {
  expect_lines(
      "node a r1 2 A100 1000\n"
      "task ends normal on=a:0 work=36300\n"
      "task goes normal on=a:1\n",
      {{"wait for it", "infer", "ends/finish -> a:0"},
       {"beside one that yields", "infer count=2", "ends/finish goes/boundary -> a:0 a:1"}});
}

TEST(Preempt, D2_ClaimsAndVictimsOfOtherPlansAreLeftAlone) {
  PoolState state = pool_of(
      "node a r1 3 A100 1000\n"
      "task ends normal on=a:0 work=36300\n"
      "task goes normal on=a:1 preemptions=4\n"
      "task waits infer count=1\n");
  Plan plan;
  plan.task = task_named(state, "waits");
  plan.slots = {{DeviceId(2), whole_device, MiB(1000)}};
  plan.victims = {{task_named(state, "ends"), ReleaseMode::finish, pool_now, 0}};
  state.plans.emplace(plan.task, plan);
  rebuild_index(state);
  EXPECT_EQ(victims_for(state, "infer"), "goes/boundary -> a:1");
  EXPECT_EQ(victims_for(state, "infer count=2"), "nothing");
}

TEST(Preempt, D7_AGangTakesAGangOnce) {
  expect_lines(
      "node a r1 2 A100 1000\nnode b r1 2 A100 1000\nnode c r1 2 A100 1000\n"
      "task a0 normal on=a:0\n"
      "task a1 normal on=a:1\n"
      "task wide normal on=b:0-1,c:0-1\n",
      {
          {"one job over both nodes", "infer count=4", "wide/boundary -> b:0 b:1 c:0 c:1"},
          {"its rest where it is cheapest", "infer count=3", "wide/boundary -> b:0 b:1 c:0"},
          {"one node: one of the wide job costs as much as all of it", "infer count=2",
           "wide/boundary -> b:0 b:1"},
          {"all or nothing", "infer count=5", "a0/boundary wide/boundary -> b:0 b:1 c:0 c:1 a:0"},
          {"seven there are not", "infer count=7", "nothing"},
      });
}

TEST(Preempt, D2_TooLateIsNothing) {
  PoolState state = pool_of("node a r1 1 A100 1000\ntask a0 normal on=a:0\n");
  EXPECT_EQ(victims_for(state, "infer", seconds(554)), "nothing");
  EXPECT_EQ(victims_for(state, "infer", seconds(555)), "a0/boundary -> a:0");
  EXPECT_EQ(victims_for(state, "infer", hours(24 * 400)), "a0/boundary -> a:0");
}

TEST(Preempt, D2_KillsOnlyWhenNothingElseServes) {
  PoolState state = pool_of(
      "node a r1 1 A100 1000\nnode b r1 1 A100 1000\n"
      "task cheap normal on=a:0 contract=none captured=-1\n"
      "task dear normal on=b:0 preemptions=5\n");
  state.spec.preempt.break_glass = true;
  EXPECT_EQ(victims_for(state, "infer"), "dear/boundary -> b:0");
  EXPECT_EQ(victims_for(state, "infer", seconds(30)), "cheap/kill -> a:0");
  state.spec.preempt.break_glass = false;
  EXPECT_EQ(victims_for(state, "infer", seconds(30)), "nothing");
}

TEST(Preempt, D2_SwitchedOff) {
  PoolState state = pool_of("node a r1 1 A100 1000\ntask a0 normal on=a:0\n");
  state.spec.preempt.enabled = false;
  EXPECT_EQ(victims_for(state, "infer"), "nothing");
}

TEST(Preempt, D2_ModelsAreKeptApart) {
  expect_lines(
      "node a r1 2 A100 1000\nnode h r1 2 H100 2000\n"
      "task a0 normal on=a:0 preemptions=3\ntask a1 normal on=a:1 preemptions=3\n"
      "task h0 normal on=h:0\ntask h1 normal on=h:1\n",
      {{"any", "infer", "h0/boundary -> h:0"},
       {"named", "infer models=A100", "a0/boundary -> a:0"},
       {"with memory enough", "infer memory=1500 share=500", "h0/boundary -> h:0"},
       {"a gang is of one model", "infer count=3", "nothing"}});
}

// Beyond the bound on operations: a cover that holds, is minimal, and says how far off it may be.
TEST(Preempt, D2_LargeCoversAreBounded) {
  constexpr int devices = 16;
  CoverProblem problem;
  for (int d = 0; d < devices; ++d) problem.devices.push_back({{1000, 0, 0}, true});
  for (std::uint32_t c = 0; c < 80; ++c) {
    // Each holds a little of two devices, so that all are coupled.
    const auto first = static_cast<std::uint32_t>(problem.pieces.size());
    problem.pieces.push_back({c % devices, {100 + 7 * (c % 5), 0, 0}});
    problem.pieces.push_back({(c * 5 + 1 + c / devices) % devices, {100, 0, 0}});
    if (problem.pieces[first].device == problem.pieces[first + 1].device) {
      problem.pieces.pop_back();
    }
    problem.candidates.push_back(
        {1'000 + 37 * (c % 11), first, static_cast<std::uint32_t>(problem.pieces.size()) - first});
  }
  CoverSolver solver;
  Cover cover;
  Cells cells(100'000);
  solver.solve(problem, 6, cells, cover);
  ASSERT_TRUE(cover.feasible);
  EXPECT_LE(cover.lower, cover.price);
  EXPECT_LE(cover.price, 2 * cover.lower);
  EXPECT_GT(cells.left(), -100'000) << "the work is bounded";
}

}  // namespace
}  // namespace neap::preempt_test
