// D8: the published placement results, run by run.
#include "simulate/openb/protocol.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "simulate/testing/published.h"
#include "simulate/testing/published_runs.h"

namespace neap::simulate {
namespace {

TEST(Protocol, D8_reproduces_published_runs) { expect_published("default", 42, 43); }

TEST(Protocol, D8_ends_in_the_published_state) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const Workload workload = published->workload("default");
  const trace::OpenbOrder order = published->order("default", 42, workload);
  Cluster cluster = workload.cluster(order.nodes);
  const auto fgd = make_reference_policy("fgd", workload, cluster, {});
  const Outcome outcome = run_protocol(workload, order.pods, cluster, *fgd);
  EXPECT_EQ(cluster.allocated(), 5'919'410);
  std::int64_t cpu = 0, touched = 0;
  double fragments = 0;
  const Fragmentation fragmentation(workload);
  for (const Node& node : cluster.nodes()) {
    cpu += node.cpu;
    touched += node.devices - node.count_unused();
    fragments += fragmentation.of(node);
  }
  EXPECT_EQ(107'018'000 - cpu, 89'928'302);
  EXPECT_EQ(touched, 6'189);
  EXPECT_NEAR(fragments, 291'360, 5);
  EXPECT_NEAR(outcome.fragmented.values[bins - 1], fragments / 6'212'000 * 10'000, 1);
}

}  // namespace
}  // namespace neap::simulate
