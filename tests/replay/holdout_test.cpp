// D8: neap's own policy where it was not tuned: other orders of the given traces, other mixes of
// their pods, and a drawn cluster. Takes minutes: NEAP_LONG=1.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/experiment.h"
#include "simulate/testing/published.h"
#include "trace/generate.h"
#include "trace/read_all.h"

namespace neap::simulate::holdout_test {
namespace {

// Pods of a trace drawn anew: those of one kind so many times as often.
struct Mix {
  std::string name;
  std::string trace;
  std::uint64_t cpu_only = 1;
  std::uint64_t shares = 1;
  std::uint64_t several = 1;
  std::uint64_t insistent = 1;
};

void PrintTo(const Mix& mix, std::ostream* out) { *out << mix.name; }

std::uint64_t weight_of(const Mix& mix, const trace::OpenbPod& pod) {
  if (pod.gpus == 0) return mix.cpu_only;
  if (!pod.models.empty()) return mix.insistent;
  if (pod.gpus > 1) return mix.several;
  return pod.each.value < whole ? mix.shares : 1;
}

Workload mixed(const Published& published, const Mix& mix) {
  const auto nodes = trace::read_file<trace::OpenbNode, trace::OpenbNodeReader>(
      published.folder + "openb_node_list_gpu_node.csv");
  const auto pods = trace::read_file<trace::OpenbPod, trace::OpenbPodReader>(
      published.folder + "openb_pod_list_" + mix.trace + ".csv");
  std::vector<trace::OpenbPod> weighted;
  for (const trace::OpenbPod& pod : pods.value()) {
    for (std::uint64_t w = 0; w < weight_of(mix, pod); ++w) weighted.push_back(pod);
  }
  trace::Chance chance(1);
  chance.shuffle(weighted);
  // As many as ask for what the cluster has: the rest of the order is drawn from them again.
  std::int64_t asked = 0;
  std::size_t taken = 0;
  const std::int64_t capacity = published.workload("default").capacity();
  while (taken < weighted.size() && asked < capacity) {
    asked += weighted[taken].gpus * weighted[taken].each.value;
    ++taken;
  }
  weighted.resize(taken);
  auto workload = make_workload(nodes.value(), weighted);
  EXPECT_TRUE(workload);
  return std::move(*workload);
}

// What a policy leaves at 100 % arrived, in percent, over orders that nobody has published.
double mean_left(const Workload& workload, const std::string& name, const LeftoverTable& table) {
  constexpr std::int64_t first = 101, last = 103;
  double sum = 0;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    const trace::OpenbOrder order = draw_order(workload, seed);
    Cluster cluster = workload.cluster(order.nodes);
    std::unique_ptr<Policy> policy;
    if (name == "neap") {
      policy = std::make_unique<NeapPolicy>(table, Situation{}, workload, cluster, PolicyOptions{});
    } else {
      policy = make_reference_policy(name, workload, cluster, {});
    }
    const Outcome outcome = run_protocol(workload, order.pods, cluster, *policy);
    EXPECT_EQ(outcome.refused_though_feasible, 0);
    sum += outcome.unallocated_at(100) / 100.0;
  }
  return sum / (last - first + 1);
}

void expect_less_left(const std::string& name, const Workload& workload) {
  const LeftoverTable table = learn_leftover(workload);
  const double ours = mean_left(workload, "neap", table), fgd = mean_left(workload, "fgd", table);
  std::printf("holdout %s: neap %.2f, fgd %.2f\n", name.c_str(), ours, fgd);
  EXPECT_LT(ours, fgd) << name;
}

class Holdout : public testing::TestWithParam<Mix> {};

TEST_P(Holdout, D8_leaves_less_than_the_published_policy) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  const Mix& mix = GetParam();
  const bool as_recorded = mix.name == mix.trace;
  expect_less_left(mix.name, as_recorded ? published->workload(mix.trace) : mixed(*published, mix));
}

INSTANTIATE_TEST_SUITE_P(
    Published, Holdout,
    testing::Values(Mix{"default", "default"}, Mix{"cpu200", "cpu200"},
                    Mix{"gpushare60", "gpushare60"}, Mix{"multigpu30", "multigpu30"},
                    Mix{"gpuspec20", "gpuspec20"}, Mix{"few_cpu_only", "default", 0},
                    Mix{"cpu_only_thrice", "default", 3}, Mix{"shares_thrice", "default", 1, 3},
                    Mix{"several_thrice", "multigpu30", 1, 1, 3},
                    Mix{"insistent_twice", "gpuspec20", 1, 1, 1, 2}),
    [](const auto& mix) { return mix.param.name; });

TEST(DrawnCluster, D8_leaves_less_than_the_published_policy) {
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  std::vector<trace::OpenbNode> nodes;
  for (int n = 0; n < 300; ++n) {
    const std::int32_t gpus = n % 5 == 0 ? 2 : n % 5 == 1 ? 4 : 8;
    nodes.push_back({"n" + std::to_string(n), 12'000 * gpus, MiB(524'288), gpus, "G2"});
  }
  std::vector<trace::OpenbPod> pods;
  trace::PodGenerator generator(seconds(1), hours(1), 4);
  for (int p = 0; p < 3'000; ++p) {
    const auto job = std::get<trace::JobArrival>(generator.next().what);
    pods.push_back({job.name, job.cpu_milli, job.memory, job.gpus, job.each, "", {}, {}});
  }
  const auto workload = make_workload(nodes, pods);
  ASSERT_TRUE(workload);
  expect_less_left("drawn", *workload);
}

}  // namespace
}  // namespace neap::simulate::holdout_test
