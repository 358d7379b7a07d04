// Nobody starves (D6, POLICIES 4, S11): under an adversary who keeps to the envelopes every task to
// which a start was promised starts by then, for simulated weeks, over restarts; and the bugs that
// would break it are seen.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/promise.h"
#include "core/testing/any_below.h"
#include "core/testing/contest.h"
#include "core/testing/pool_builder.h"

namespace neap::starvation_property {
namespace {

using testing::any_below;
using testing::ContestPlan;
using testing::ContestResult;
using testing::Planted;
using testing::run_contest;
using testing::Shapes;

struct Sum {
  std::int64_t tasks = 0, promised = 0, kept = 0, late = 0, withdrawn = 0, unpromised = 0;
  std::int64_t urgent_refused = 0, in_lane = 0, restarts = 0, worst = 0;

  void add(const ContestResult& r) {
    tasks += r.submitted;
    promised += r.promised;
    kept += r.kept;
    late += r.late;
    withdrawn += r.withdrawn;
    unpromised += r.unpromised;
    urgent_refused += r.urgent_refused;
    in_lane += r.in_lane;
    restarts += r.restarts;
    worst = std::max(worst, r.worst_permille);
  }
};

void print(const char* what, const Sum& s) {
  std::printf(
      "starvation, %s: %lld tasks, %lld starts promised, %lld kept, %lld late, %lld without "
      "promise, %lld started in the lane, %lld restarts, worst wait/bound 0.%03lld\n",
      what, static_cast<long long>(s.tasks), static_cast<long long>(s.promised),
      static_cast<long long>(s.kept), static_cast<long long>(s.late),
      static_cast<long long>(s.unpromised), static_cast<long long>(s.in_lane),
      static_cast<long long>(s.restarts), static_cast<long long>(s.worst));
}

constexpr Shapes all_shapes[] = {Shapes::singles, Shapes::gangs, Shapes::parts, Shapes::shares,
                                 Shapes::mixed};

TEST(Starvation, D6_EveryPromisedStartIsKeptAgainstAnAdversaryWithinTheEnvelope) {
  Sum sum;
  const bool many = std::getenv("NEAP_SIM_SEEDS") != nullptr;
  const std::uint64_t seeds = many ? 4 : 1;
  for (const Shapes shapes : all_shapes) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      ContestPlan plan;
      plan.seed = seed * 17 + static_cast<std::uint64_t>(shapes);
      plan.shapes = shapes;
      const bool wide = (seed + static_cast<std::uint64_t>(shapes)) % 2 == 0;
      plan.devices_per_node = wide ? 8 : 4;
      plan.nodes = wide ? 4 : 6;
      plan.lane = wide ? 16 : 8;
      plan.normal_per_day = wide ? 40 : 20;
      plan.lasts = hours(24 * (many ? 28 : 7));
      const ContestResult r = run_contest(plan);
      EXPECT_EQ(r.late, 0) << "seed " << plan.seed << ": " << r.worst;
      EXPECT_EQ(r.withdrawn, 0) << "seed " << plan.seed;
      EXPECT_EQ(r.urgent_refused, 0) << "seed " << plan.seed;
      EXPECT_GT(r.in_lane, 20) << "seed " << plan.seed;
      EXPECT_GT(r.restarts, 3);
      sum.add(r);
    }
  }
  print("weeks of each shape", sum);
}

TEST(Starvation, D6_WhereTheLoadIsTooHighNoPromiseIsMadeThatIsNotKept) {
  Sum sum;
  for (const Shapes shapes : {Shapes::gangs, Shapes::mixed}) {
    ContestPlan plan;
    plan.seed = 7 + static_cast<std::uint64_t>(shapes);
    plan.shapes = shapes;
    plan.normal_per_day = 400;
    plan.urgent_burst = 8;
    plan.urgent_per_hour = 6;
    plan.lasts = hours(24 * 5);
    const ContestResult r = run_contest(plan);
    EXPECT_EQ(r.late, 0) << "seed " << plan.seed << ": " << r.worst;
    EXPECT_EQ(r.withdrawn, 0);
    EXPECT_GT(r.unpromised, 100);
    sum.add(r);
  }
  print("too many", sum);
}

TEST(Starvation, D6_BackfillPastTheForcedHeadIsSeen) {
  std::int64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 4 && late == 0; ++seed) {
    ContestPlan plan;
    plan.seed = seed;
    plan.shapes = Shapes::gangs;
    plan.normal_per_day = 120;
    plan.urgent_burst = 0;
    plan.planted = Planted::backfill;
    late = run_contest(plan).late;
  }
  EXPECT_GT(late, 0);
}

// ---- devices that are certainly busy -----------------------------------------------------------

std::string lane_text(int nodes, int devices) {
  std::string text;
  for (int n = 0; n < nodes; ++n) {
    text += "node n" + std::to_string(n) + " r0 " + std::to_string(devices) +
            " A100 1000 roles=" + std::string(static_cast<std::size_t>(devices), 'l') + "\n";
  }
  for (int n = 0; n < nodes; ++n) {
    for (int d = 0; d < devices; ++d) {
      if (any_below(2) == 0) continue;
      text += "task t" + std::to_string(n) + "_" + std::to_string(d) + " normal on=n" +
              std::to_string(n) + ":" + std::to_string(d) + " lane\n";
    }
  }
  return text;
}

// Whenever a task finds no room in the lane, at least so many of its devices are busy as the
// promise counts on.
bool counts_right(const PoolState& state, const Shape& demand, std::int64_t busy) {
  std::int64_t used = 0;
  for (const DeviceState& device : state.devices) used += device.tenants.empty() ? 0 : 1;
  return !place_in_lane(state, demand).empty() || used >= busy;
}

RC_GTEST_PROP(LaneFitProperty, D6_SoManyDevicesAreBusyWhileATaskFindsNoRoom, ()) {
  const int nodes = 1 + any_below(4);
  const int devices = 1 + any_below(6);
  const PoolState state = testing::pool_of(lane_text(nodes, devices));
  const int count = 1 + any_below(nodes * devices);
  const Shape demand = testing::demand_of(state, "normal count=" + std::to_string(count));
  const LaneFit fit = fit_in_lane(state, lane_nodes(state), demand);
  RC_ASSERT(fit.fits);
  RC_ASSERT(fit.busy >= 1 || count % devices != 0);
  RC_ASSERT(counts_right(state, demand, fit.busy));
}

TEST(LaneFit, D6_CountingAllDevicesAsOneNodeIsSeen) {
  const PoolState state = testing::pool_of(
      "node a r0 4 A100 1000 roles=llll\nnode b r0 4 A100 1000 roles=llll\n"
      "task x normal on=a:0 lane\ntask y normal on=b:0 lane\n");
  const Shape demand = testing::demand_of(state, "normal count=4");
  const std::int64_t busy = fit_in_lane(state, lane_nodes(state), demand).busy;
  EXPECT_EQ(busy, 2);
  EXPECT_TRUE(counts_right(state, demand, busy));
  EXPECT_FALSE(counts_right(state, demand, 8 - 4 + 1));
}

}  // namespace
}  // namespace neap::starvation_property
