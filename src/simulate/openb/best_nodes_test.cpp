// D8: the lazily kept index finds what a plain scan finds, while pods come and go.
#include "core/rules/place/best_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/reference_graders.h"

namespace neap::simulate::best_nodes_test {

using leftover::potential_unit;
namespace {

Workload mixed_workload() {
  std::vector<trace::OpenbNode> nodes;
  for (int n = 0; n < 40; ++n) {
    nodes.push_back({"n" + std::to_string(n), 16'000 + n % 4 * 16'000, MiB(40'000 + n % 5 * 30'000),
                     n % 4 == 0 ? 1 : n % 4 * 2 + 2, n % 2 == 0 ? "T4" : "A100"});
  }
  std::vector<trace::OpenbPod> pods;
  for (int p = 0; p < 90; ++p) {
    const std::int32_t gpus = p % 9 == 0 ? 0 : p % 10 == 0 ? 4 : p % 6 == 0 ? 2 : 1;
    const std::int64_t each = gpus == 0 ? 0 : gpus > 1 || p % 3 == 0 ? 1000 : 50 + p % 8 * 110;
    pods.push_back({"p" + std::to_string(p), 500 + p % 7 * 900, MiB(1'000 + p % 6 * 11'000), gpus,
                    MilliGpu(each), p % 4 == 1 && gpus > 0 ? "T4" : ""});
  }
  auto workload = make_workload(nodes, pods);
  EXPECT_TRUE(workload);
  return std::move(*workload);
}

template <class Grader>
std::vector<std::uint32_t> scan(Grader& grader, const Cluster& cluster, const Pod& pod) {
  std::vector<std::uint32_t> best;
  std::int64_t highest = INT64_MIN;
  const ShapeRef shape{pod.demand, pod.shape};
  for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) {
    if (cluster.node(n).memory < pod.memory) continue;
    const auto grade = grader.grade(cluster.node(n), n, shape);
    if (!grade) continue;
    const std::int64_t score = grade->score - grader.price(shape, grade->cell);
    if (score > highest) best.clear();
    if (score >= highest) best.push_back(n);
    highest = std::max(highest, score);
  }
  return best;
}

template <class Grader, class Arrived>
void compare(const Workload& workload, Cluster cluster, Grader grader, Arrived arrived) {
  BestNodes<Grader> index(workload.shapes, grader);
  trace::Chance chance(11);
  std::vector<std::pair<Pod, Choice>> placed;
  int found = 0, refused = 0, several = 0;
  const auto changed = [&](std::uint32_t node) {
    grader.changed(cluster.node(node), node);
    index.changed(cluster.nodes(), node);
  };
  for (int step = 0; step < 4'000; ++step) {
    // Waves, so that the pool is full at times and at times empty.
    const bool filling = step % 400 < 250;
    if (!placed.empty() && chance.below(10) < (filling ? 3U : 7U)) {
      const std::size_t at = chance.below(placed.size());
      const auto [pod, choice] = std::exchange(placed[at], placed.back());
      placed.pop_back();
      cluster.remove(pod, choice);
      changed(choice.node);
      continue;
    }
    const Pod& pod = workload.pods[chance.below(workload.pods.size())];
    const std::vector<std::uint32_t> expected = scan(grader, cluster, pod);
    const auto has_memory = [&](std::uint32_t n) { return cluster.node(n).memory >= pod.memory; };
    const auto best = index.best(cluster.nodes(), pod.shape, has_memory);
    ASSERT_EQ(best.has_value(), !expected.empty()) << step;
    ASSERT_EQ(index.all_best(cluster.nodes(), pod.shape, has_memory), expected) << step;
    several += expected.size() > 1 ? 1 : 0;
    refused += best ? 0 : 1;
    if (best) {
      ++found;
      ASSERT_EQ(best->node, expected.front()) << step;
      const Choice choice{best->node, grader.devices(cluster.node(best->node), best->node,
                                                     {pod.demand, pod.shape})};
      cluster.place(pod, choice);
      placed.emplace_back(pod, choice);
      changed(best->node);
    }
    arrived(grader, pod.demand.milli());
  }
  EXPECT_GT(found, 1'000);
  EXPECT_GT(refused, 100);
  EXPECT_GT(several, 100);
}

TEST(BestNodes, D8_equals_a_scan_for_scores_that_often_tie) {
  const Workload workload = mixed_workload();
  compare(workload, Cluster(workload.nodes), PlainGrader(packing_score),
          [](PlainGrader&, std::int64_t) {});
  compare(workload, Cluster(workload.nodes), FgdGrader(workload, Cluster(workload.nodes)),
          [](FgdGrader&, std::int64_t) {});
}

TEST(BestNodes, D8_equals_a_scan_while_prices_change) {
  const Workload workload = mixed_workload();
  LeftoverTable table;
  trace::Chance chance(5);
  for (auto& row : table.values) {
    for (auto& value : row) value = static_cast<std::int32_t>(chance.below(400) * potential_unit);
  }
  for (const Course course : {Course::filling, Course::lasting}) {
    compare(workload, Cluster(workload.nodes),
            LeftoverGrader(table, {course}, workload, Cluster(workload.nodes)),
            [](LeftoverGrader& grader, std::int64_t milli) { grader.arrived(milli / 20); });
  }
}

}  // namespace
}  // namespace neap::simulate::best_nodes_test
