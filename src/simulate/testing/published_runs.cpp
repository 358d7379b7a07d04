#include "simulate/testing/published_runs.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/leftover/online.h"
#include "simulate/openb/protocol.h"

namespace neap::simulate {

namespace {

struct Named {
  std::string ours, published;
};
const Named deterministic[] = {{"dotprod", "02-DotProd"},
                               {"clustering", "03-GpuClustering"},
                               {"packing", "04-GpuPacking"},
                               {"bestfit", "05-BestFit"},
                               {"fgd", "06-FGD"}};

Outcome run(const Workload& workload, const trace::OpenbOrder& order, const std::string& policy,
            std::uint64_t draw = 0) {
  Cluster cluster = workload.cluster(order.nodes);
  const auto chosen = make_reference_policy(policy, workload, cluster, {draw, Ties::fixed});
  EXPECT_NE(chosen, nullptr) << policy;
  return run_protocol(workload, order.pods, cluster, *chosen);
}

// The largest distance of two curves, in points.
double distance(const Curve& curve, const std::vector<double>& published) {
  EXPECT_EQ(published.size(), bins);
  double largest = 0;
  for (std::size_t bin = 0; bin < bins; ++bin) {
    largest = std::max(largest, std::abs(curve.values[bin] / 100.0 - published[bin]));
  }
  return largest;
}

}  // namespace

void expect_published(const std::string& trace, std::int64_t first, std::int64_t last) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const auto curves = published->curves();
  const Workload workload = published->workload(trace);
  constexpr std::uint64_t draws = 4;
  double random_ours = 0, random_theirs = 0;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    const trace::OpenbOrder order = published->order(trace, seed, workload);
    for (const Named& policy : deterministic) {
      const Outcome outcome = run(workload, order, policy.ours);
      const double off = distance(outcome.allocated, curves.at({trace, policy.published, seed}));
      EXPECT_LE(off, 0.0201) << trace << " " << policy.ours << " " << seed;
      EXPECT_EQ(outcome.refused_though_feasible, 0);
      std::cout << trace << " " << seed << " " << policy.ours << ": off by at most " << off << ", "
                << outcome.seconds << " s, p99 " << outcome.decision.p99 << " ns\n";
    }
    random_theirs += curves.at({trace, "01-Random", seed})[100];
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      random_ours += run(workload, order, "random", draw).allocated.values[100] / 100.0;
    }
  }
  // Its draws raced in the original: only means can agree.
  const auto seeds = static_cast<double>(last - first + 1);
  const double off = std::abs(random_ours / draws - random_theirs) / seeds;
  EXPECT_LE(off, seeds < 5 ? 0.4 : 0.2) << trace;
  std::cout << trace << " random: mean at 100 off by " << off << "\n";
}

Unallocated mean_unallocated(const Published& published, const OwnRuns& runs) {
  const Workload workload = published.workload(runs.trace);
  std::optional<LeftoverTable> table;
  if (runs.knowledge == Knowledge::given) table = learn_leftover(workload);
  Unallocated mean;
  for (std::int64_t seed = 42; seed <= runs.last; ++seed) {
    const trace::OpenbOrder order = published.order(runs.trace, seed, workload);
    Cluster cluster = workload.cluster(order.nodes);
    const PolicyOptions options{static_cast<std::uint64_t>(seed), runs.ties};
    std::unique_ptr<Policy> policy;
    if (table) {
      policy = std::make_unique<NeapPolicy>(*table, Situation{Course::filling}, workload, cluster,
                                            options);
    } else {
      policy = std::make_unique<OnlinePolicy>(Course::filling, workload, options);
    }
    const Outcome outcome = run_protocol(workload, order.pods, cluster, *policy);
    EXPECT_EQ(outcome.refused_though_feasible, 0);
    const auto seeds = static_cast<double>(runs.last - 42 + 1);
    mean.at_100 += outcome.unallocated_at(100) / 100.0 / seeds;
    mean.at_130 += outcome.unallocated_at(130) / 100.0 / seeds;
  }
  return mean;
}

}  // namespace neap::simulate
