// D8 with departures: waits under neap's own policy against the published ones, the same pods at
// the same times for each. Takes minutes: NEAP_LONG=1.
#include <algorithm>
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
#include "trace/read_all.h"

namespace neap::simulate::departures_test {
namespace {

constexpr int seeds = 10;

struct Case {
  std::string trace;
  double load;
  Lifetimes kind;
};

std::string name_of(const Case& c) {
  return c.trace + "_" + std::to_string(std::lround(c.load * 100)) +
         (c.kind == Lifetimes::recorded ? "_own" : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

// How long each pod of the trace ran.
std::vector<double> lengths_of(const Published& published, const std::string& trace) {
  const auto rows = trace::read_file<trace::OpenbPod, trace::OpenbPodReader>(
      published.folder + "openb_pod_list_" + trace + ".csv");
  std::vector<double> lengths;
  for (const trace::OpenbPod& pod : rows.value()) {
    const std::int64_t length = pod.deleted_s.value_or(1) - pod.created_s.value_or(0);
    lengths.push_back(static_cast<double>(std::max<std::int64_t>(length, 1)));
  }
  return lengths;
}

struct Setting {
  Workload workload;
  LeftoverTable table;
  std::vector<double> recorded;  // empty: exponential
  Situation situation;
  ComingOptions comings;
  double warm_up = 0;
};

Setting setting_of(const Published& published, const Case& c) {
  Setting setting{.workload = published.workload(c.trace)};
  setting.table = learn_lasting(setting.workload);
  setting.situation = {Course::lasting,
                       {static_cast<std::int32_t>(std::lround(c.load * 100)), 100}};
  if (c.kind == Lifetimes::exponential) {
    setting.comings = {c.load, 8, c.kind, Start::empty};
    setting.warm_up = 2.5;
    return setting;
  }
  setting.recorded = lengths_of(published, c.trace);
  setting.situation.outlook.residual_percent = residual_percent_of(setting.recorded);
  setting.comings = {c.load, 2, c.kind, Start::balanced};
  setting.warm_up = 0.5;
  return setting;
}

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

Series run(const Setting& setting, const std::string& name) {
  const Workload& workload = setting.workload;
  Series series;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ComingOptions options = setting.comings;
    options.seed = seed;
    const auto comings = draw_comings(workload, setting.recorded, options);
    Cluster cluster = cluster_of(workload, seed);
    std::unique_ptr<Policy> policy;
    if (name == "neap") {
      policy = std::make_unique<NeapPolicy>(setting.table, setting.situation, workload, cluster,
                                            PolicyOptions{});
    } else {
      policy = make_reference_policy(name, workload, cluster, {});
    }
    const WaitingOutcome outcome =
        run_with_departures(workload, comings, setting.warm_up, cluster, *policy);
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
  const auto& [trace, load, kind] = GetParam();
  const bool recorded = kind == Lifetimes::recorded;
  const Setting setting = setting_of(*published, GetParam());
  const Series ours = run(setting, "neap");
  for (const char* name : {"fgd", "bestfit"}) {
    const Series theirs = run(setting, name);
    const double upper = upper_end(ours, theirs);
    std::printf(
        "%s%s at %.2f: mean wait %.5f lifetimes, %s %.5f, difference below %.5f, "
        "fragmented %.4f, %s %.4f\n",
        trace.c_str(), recorded ? " own" : "", load, ours.mean(), name, theirs.mean(), upper,
        ours.fragmented, name, theirs.fragmented);
    EXPECT_EQ(ours.never_placed, theirs.never_placed);
    if (recorded) {
      // Not behind beyond chance. With more asked for than there is, FGD is ahead on one trace:
      // docs/decisions/0008.
      const bool known_short = trace == "gpuspec20" && load > 1;
      EXPECT_TRUE(known_short || upper_end(theirs, ours) >= 0) << name;
      continue;
    }
    if (load > 1) {
      // The queue grows for ever: what is served first decides, not what is packed how.
      EXPECT_LT(ours.mean(), theirs.mean() * 1.01) << name;
    } else if (load > 0.9) {
      EXPECT_LT(upper, 0) << name;
    } else {
      // Hardly anybody waits.
      EXPECT_LT(ours.mean(), theirs.mean() + 1e-4) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, Waits, testing::ValuesIn([] {
      std::vector<Case> cases;
      for (const char* trace : {"default", "cpu200", "gpushare60", "multigpu30", "gpuspec20"}) {
        for (const double load : {0.85, 0.95, 1.05}) {
          cases.push_back({trace, load, Lifetimes::exponential});
          // One trace has no times.
          if (std::string(trace) != "multigpu30")
            cases.push_back({trace, load, Lifetimes::recorded});
        }
      }
      return cases;
    }()),
    [](const auto& chosen) { return name_of(chosen.param); });

}  // namespace
}  // namespace neap::simulate::departures_test
