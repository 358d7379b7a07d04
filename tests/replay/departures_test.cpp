// D8 with departures: waits under neap's own policy against the published ones, the same pods at
// the same times for each. Takes minutes: NEAP_LONG=1.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/departures.h"
#include "simulate/testing/published.h"

namespace neap::simulate {
namespace {

constexpr int seeds = 10;
constexpr double lifetimes = 8, warm_up = 2.5;

struct Case {
  std::string trace;
  double load;
};

struct Series {
  std::vector<double> waits;
  double fragmented = 0;
  std::int64_t never_placed = 0;

  [[nodiscard]] double mean() const {
    return std::accumulate(waits.begin(), waits.end(), 0.0) / seeds;
  }
};

Cluster cluster_of(const Workload& workload, std::uint64_t seed) {
  std::vector<std::uint32_t> order(workload.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  trace::Chance(seed).shuffle(order);
  return workload.cluster(order);
}

Series run(const Workload& workload, const LeftoverTable& table, double load,
           const std::string& name) {
  Series series;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto comings =
        draw_comings(workload, {}, {load, lifetimes, Lifetimes::exponential, Start::empty, seed});
    Cluster cluster = cluster_of(workload, seed);
    std::unique_ptr<Policy> policy;
    if (name == "neap") {
      policy =
          std::make_unique<NeapPolicy>(table, Course::lasting, workload, cluster, PolicyOptions{});
    } else {
      policy = make_reference_policy(name, workload, cluster, {});
    }
    const WaitingOutcome outcome =
        run_with_departures(workload, comings, warm_up, cluster, *policy);
    series.waits.push_back(outcome.mean_wait);
    series.fragmented += outcome.fragmented / seeds;
    series.never_placed += outcome.never_placed;
  }
  return series;
}

// Upper end of the 95 % interval of the mean difference, seed by seed.
double upper_end(const Series& ours, const Series& theirs) {
  double sum = 0, squares = 0;
  for (std::size_t s = 0; s < seeds; ++s) {
    const double difference = ours.waits[s] - theirs.waits[s];
    sum += difference;
    squares += difference * difference;
  }
  constexpr double student = 2.262;  // 9 degrees of freedom
  const double variance = std::max(0.0, (squares - sum * sum / seeds) / (seeds - 1));
  return sum / seeds + student * std::sqrt(variance / seeds);
}

class Waits : public testing::TestWithParam<Case> {};

TEST_P(Waits, D8_are_shorter_than_under_the_published_policies) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  const auto& [trace, load] = GetParam();
  const Workload workload = published->workload(trace);
  const LeftoverTable table = learn_lasting(workload);
  const Series ours = run(workload, table, load, "neap");
  for (const char* name : {"fgd", "bestfit"}) {
    const Series theirs = run(workload, table, load, name);
    const double upper = upper_end(ours, theirs);
    std::printf(
        "%s at %.2f: mean wait %.5f lifetimes, %s %.5f, difference below %.5f, "
        "fragmented %.4f, %s %.4f\n",
        trace.c_str(), load, ours.mean(), name, theirs.mean(), upper, ours.fragmented, name,
        theirs.fragmented);
    if (load > 1) {
      // The queue grows for ever: what is served first decides, not what is packed how.
      EXPECT_LT(ours.mean(), theirs.mean() * 1.01) << name;
    } else if (load > 0.9) {
      EXPECT_LT(upper, 0) << name;
    } else {
      // Hardly anybody waits.
      EXPECT_LT(ours.mean(), theirs.mean() + 1e-4) << name;
    }
    EXPECT_EQ(ours.never_placed, theirs.never_placed);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, Waits, testing::ValuesIn([] {
      std::vector<Case> cases;
      for (const char* trace : {"default", "cpu200", "gpushare60", "multigpu30", "gpuspec20"}) {
        for (const double load : {0.85, 0.95, 1.05}) cases.push_back({trace, load});
      }
      return cases;
    }()),
    [](const auto& info) {
      return info.param.trace + "_" + std::to_string(std::lround(info.param.load * 100));
    });

}  // namespace
}  // namespace neap::simulate
