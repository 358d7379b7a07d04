// D8: the experiment with departures: nothing is lost, nobody waits without need.
#include "simulate/openb/departures.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/neap_policy.h"

namespace neap::simulate {
namespace {

Workload one_kind(std::int64_t milli, int nodes) {
  std::vector<trace::OpenbNode> rows;
  for (int n = 0; n < nodes; ++n) {
    rows.push_back({"n" + std::to_string(n), 64'000, MiB(100'000), 2, "T4"});
  }
  auto workload = make_workload(rows, {{"p", 1'000, MiB(1'000), 1, MilliGpu(milli), "", {}, {}}});
  EXPECT_TRUE(workload);
  return std::move(*workload);
}

WaitingOutcome run(const Workload& workload, const std::vector<Coming>& comings, double warm_up,
                   const std::string& name = "fgd") {
  Cluster cluster(workload.nodes);
  const auto policy = make_reference_policy(name, workload, cluster, {});
  const WaitingOutcome outcome = run_with_departures(workload, comings, warm_up, cluster, *policy);
  EXPECT_EQ(cluster.allocated(), 0) << "all have departed";
  return outcome;
}

TEST(Departures, D8_a_pod_waits_for_the_first_that_departs) {
  // Two devices, four whole pods of length 4, 1, 2, 1; all but the first two must wait.
  const Workload workload = one_kind(1'000, 1);
  const std::vector<Coming> comings = {{0, 0, 4}, {0, 0.5, 1}, {0, 1, 2}, {0, 1, 1}};
  const WaitingOutcome outcome = run(workload, comings, 0);
  // The third starts at 1.5, the fourth at 3.5.
  EXPECT_DOUBLE_EQ(outcome.mean_wait, (0 + 0 + 0.5 + 2.5) / 4);
  EXPECT_DOUBLE_EQ(outcome.waited, 0.5);
  EXPECT_EQ(outcome.never_placed, 0);
}

TEST(Departures, D8_a_pod_that_fits_goes_ahead_of_one_that_does_not) {
  std::vector<trace::OpenbNode> nodes = {{"n", 64'000, MiB(100'000), 2, "T4"}};
  auto workload =
      make_workload(nodes, {{"one", 1'000, MiB(1'000), 1, MilliGpu(1'000), "", {}, {}},
                            {"two", 1'000, MiB(1'000), 2, MilliGpu(1'000), "", {}, {}},
                            {"four", 1'000, MiB(1'000), 4, MilliGpu(1'000), "", {}, {}}});
  ASSERT_TRUE(workload);
  const std::vector<Coming> comings = {{0, 0, 2}, {1, 0.5, 1}, {0, 1, 1}, {2, 1, 1}};
  const WaitingOutcome outcome = run(*workload, comings, 0);
  EXPECT_DOUBLE_EQ(outcome.mean_wait, (0 + 1.5 + 0) / 3);
  EXPECT_EQ(outcome.never_placed, 1) << "no node has four";
}

TEST(Departures, D8_the_offered_load_is_what_was_asked_for) {
  const Workload workload = one_kind(250, 50);
  for (const Lifetimes kind : {Lifetimes::exponential, Lifetimes::recorded}) {
    for (const Start start : {Start::empty, Start::balanced}) {
      const auto comings = draw_comings(workload, {7}, {0.5, 60, kind, start, 3});
      const WaitingOutcome outcome = run(workload, comings, start == Start::empty ? 10 : 0.01);
      EXPECT_NEAR(outcome.allocated, 0.5, 0.02);
      EXPECT_EQ(outcome.mean_wait, 0) << "half of it is free";
    }
  }
}

TEST(Departures, D8_what_runs_lasts_longer_than_what_comes) {
  EXPECT_EQ(residual_percent_of({3, 3, 3}), 50) << "half of it is still to come";
  // Nine short ones and one of 91: the mean is 10, and hardly anything else is ever running.
  EXPECT_EQ(residual_percent_of({1, 1, 1, 1, 1, 1, 1, 1, 1, 91}), 414);
}

TEST(Departures, D8_runs_repeat_themselves_with_every_policy) {
  const Workload workload = one_kind(700, 20);
  const auto comings =
      draw_comings(workload, {}, {1.0, 20, Lifetimes::exponential, Start::empty, 5});
  for (const char* name : {"random", "bestfit", "fgd"}) {
    const WaitingOutcome a = run(workload, comings, 2, name), b = run(workload, comings, 2, name);
    EXPECT_EQ(a.mean_wait, b.mean_wait);
    // 700 of 1000: at most 70 % can be allocated, and nearly all of that is asked for.
    EXPECT_GT(a.allocated, 0.6);
    EXPECT_LE(a.allocated, 0.7);
    EXPECT_GT(a.mean_wait, 0);
  }
  Cluster cluster(workload.nodes);
  NeapPolicy policy(LeftoverTable{}, Situation{Course::lasting}, workload, cluster, {});
  EXPECT_LE(run_with_departures(workload, comings, 2, cluster, policy).allocated, 0.7);
}

}  // namespace
}  // namespace neap::simulate
