// D8: neap's own placement against the published results. On all traces: tests/replay.
#include "simulate/leftover/neap_policy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/online.h"
#include "simulate/testing/published.h"
#include "simulate/testing/published_runs.h"

namespace neap::simulate {
namespace {

TEST(NeapPolicy, D8_beats_the_published_policy_on_the_default_trace) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  // The best published policy leaves 4.76.
  EXPECT_LE(mean_unallocated(*published, {"default", Ties::fixed, 43, Knowledge::given}).at_100,
            3.9);
}

// What has not arrived does not matter: the same arrivals, and after them others.
TEST(OnlinePolicy, D8_does_not_look_at_what_is_still_to_come) {
  std::vector<trace::OpenbNode> nodes;
  for (int n = 0; n < 30; ++n) {
    nodes.push_back({"n" + std::to_string(n), 64'000, MiB(500'000), 8, "T4"});
  }
  const auto pod = [](std::int64_t cpu, std::int64_t each) {
    return trace::OpenbPod{"p", cpu, MiB(10), 1, MilliGpu(each), "", {}, {}};
  };
  const auto choices = [&](std::int64_t cpu_to_come, std::int64_t each_to_come) {
    std::vector<trace::OpenbPod> rows;
    for (int p = 0; p < 150; ++p) rows.push_back(pod(1'000 + p % 5 * 500, 100 + p % 3 * 300));
    for (int p = 0; p < 500; ++p) rows.push_back(pod(cpu_to_come, each_to_come));
    const auto workload = make_workload(nodes, rows);
    EXPECT_TRUE(workload);
    Cluster cluster(workload->nodes);
    OnlinePolicy policy(Course::filling, *workload, {});
    std::vector<std::uint32_t> chosen;
    // Enough arrivals to learn twice, of which the last find the pool full.
    for (std::size_t p = 0; p < 2'200; ++p) {
      const Pod& arrived = workload->pods[p % 150];
      policy.meanwhile(cluster);
      const auto choice = policy.choose(cluster, arrived);
      if (!choice) continue;
      cluster.place(arrived, *choice);
      policy.changed(cluster, choice->node);
      chosen.push_back(choice->node * 100 + choice->devices);
    }
    return chosen;
  };
  EXPECT_EQ(choices(1'000, 500), choices(9'000, 810));
}

}  // namespace
}  // namespace neap::simulate
