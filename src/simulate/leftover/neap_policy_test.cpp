// D8: neap's own placement against the published results. On all traces: tests/replay.
#include "simulate/leftover/neap_policy.h"

#include <gtest/gtest.h>

#include "simulate/testing/published.h"
#include "simulate/testing/published_runs.h"

namespace neap::simulate {
namespace {

TEST(NeapPolicy, D8_beats_the_published_policy_on_the_default_trace) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  // The best published policy leaves 4.76.
  EXPECT_LE(mean_unallocated(*published, "default", Ties::fixed, 43), 3.9);
}

}  // namespace
}  // namespace neap::simulate
