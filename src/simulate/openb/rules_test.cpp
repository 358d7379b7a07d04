// D8: units of the published rules, and what every policy must keep.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/rules/place/leftover_table.h"
#include "core/rules/place/reserve.h"
#include "core/rules/place/scarcity.h"
#include "core/rules/place/valuation.h"
#include "simulate/openb/experiment.h"
#include "simulate/openb/fragmentation.h"
#include "simulate/testing/published.h"

namespace neap::simulate {
using namespace leftover;
namespace {

Node node_of(std::int32_t cpu, const std::vector<std::int16_t>& idle) {
  Node node;
  node.cpu = cpu;
  node.memory = MiB(1 << 20);
  node.idle.fill(0);
  for (const std::int16_t g : idle) {
    const auto bit = static_cast<std::uint16_t>(1U << node.devices);
    node.by_role[0] = static_cast<std::uint16_t>(node.by_role[0] | bit);
    if (g == whole) node.unused = static_cast<std::uint16_t>(node.unused | bit);
    node.idle[node.devices++] = g;
    node.free += g;
  }
  return node;
}

TEST(Fragmentation, D8_published_unit_values) {
  const Fragmentation share({{{6000, 1, 465, 0}, 0.0933}});
  EXPECT_NEAR(share.of(node_of(1000, {200, 1000, 1000, 500})), 251.91, 1e-9);
  const Fragmentation two({{{1000, 2, 1000, 0}, 1.0}});
  EXPECT_NEAR(two.of(node_of(8000, {200, 1000, 1000, 500})), 700, 1e-9);
  EXPECT_NEAR(two.of(node_of(8000, {1000, 1000, 1000, 1000})), 0, 1e-9);
}

TEST(Fragmentation, D8_cpu_only_and_other_models_leave_all_idle) {
  const Node node = node_of(8000, {600, 1000});
  EXPECT_NEAR(Fragmentation({{{1000, 0, 0, 0}, 1.0}}).of(node), 1600, 1e-9);
  EXPECT_NEAR(Fragmentation({{{9000, 0, 0, 0}, 1.0}}).of(node), 1600, 1e-9);
  EXPECT_NEAR(Fragmentation({{{1000, 1, 500, 2}, 1.0}}).of(node), 1600, 1e-9);
  EXPECT_NEAR(Fragmentation({{{1000, 1, 700, 1}, 1.0}}).of(node), 600, 1e-9);
}

TEST(Fragmentation, D8_of_the_empty_published_cluster) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const Workload workload = published->workload("default");
  EXPECT_EQ(workload.classes.size(), 91U);
  EXPECT_EQ(workload.typical, 35U);
  const Fragmentation fragmentation(workload);
  double sum = 0;
  for (const Node& node : workload.nodes) sum += fragmentation.of(node);
  EXPECT_NEAR(sum, 866232.55, 0.01);
}

// The normal tail at z, in tenths: from published tables, on both sides of every rounding edge.
TEST(Scarcity, D8_price_is_the_rounded_normal_tail) {
  const std::array<std::pair<std::int64_t, std::int32_t>, 14> thousandths = {{{-5000, 10},
                                                                              {-1645, 10},
                                                                              {-1644, 9},
                                                                              {-1037, 9},
                                                                              {-1036, 8},
                                                                              {-675, 8},
                                                                              {-674, 7},
                                                                              {-386, 7},
                                                                              {-126, 6},
                                                                              {0, 5},
                                                                              {126, 4},
                                                                              {386, 3},
                                                                              {1037, 1},
                                                                              {1645, 0}}};
  for (const auto& [z, tenths] : thousandths) {
    EXPECT_EQ(tenths_of_shortage(z, 1'000'000), tenths) << z;
  }
  // No overflow at the largest pools.
  EXPECT_EQ(tenths_of_shortage(1'000'000'000'000, 1), 0);
  EXPECT_EQ(tenths_of_shortage(-1'000'000'000'000, 1), 10);
}

TEST(Scarcity, D8_a_model_that_others_insist_on_costs) {
  // Half of what is asked for insists on model 0, which is a tenth of the cluster.
  const std::vector<Scarcity::Want> wants = {{1, 1, 500}, {0, 1, 500}};
  Scarcity scarcity(wants, 2);
  const Node rare = node_of(1000, {1000});
  Node plenty = node_of(1000, std::vector<std::int16_t>(9, 1000));
  plenty.model = 1;
  scarcity.count(rare, 1);
  scarcity.count(plenty, 1);
  scarcity.refresh(10'000);
  EXPECT_EQ(scarcity.price(0, 500, 0, 0),
            500 * potential_unit * 9 / 10 + 500 * potential_unit / 10);
  EXPECT_EQ(scarcity.price(1, 500, 0, 0), 0);
}

TEST(Scarcity, D8_breaking_a_group_costs_once_no_more_fit) {
  const std::vector<Scarcity::Want> wants = {{0, 4, 4000}};
  Scarcity scarcity(wants, 1);
  scarcity.count(node_of(1000, {1000, 1000, 1000, 1000, 1000}), 1);
  scarcity.refresh(8'000'000);
  EXPECT_EQ(scarcity.price(0, 1000, 5, 1), 0) << "four are left";
  EXPECT_EQ(scarcity.price(0, 1000, 4, 1), 4000 * potential_unit);
}

TEST(Leftover, D8_rows_by_cores_and_scores_by_what_becomes_useless) {
  EXPECT_EQ(row_of_shared(499), 0U);
  EXPECT_EQ(row_of_shared(500), 1U);
  EXPECT_EQ(row_of_shared(30'000), 20U);
  EXPECT_EQ(row_of_shared(1'000'000), 20U);
  EXPECT_EQ(row_of_unused(8'000, 4'000), row_of_shared(2'000));
  Valuation valuation;
  for (auto& row : valuation.table.values) row[19] = 190 * potential_unit;  // 190 milli fit nobody
  const Node node = node_of(30'000, {1000, 490});
  const Placement placement =
      best_placement(valuation, node, potential(valuation, node), {1, 1, 300, 0});
  // On the second device 190 would be left: the first is better, though it is wholly free.
  EXPECT_EQ(placement.devices, 1U);
  EXPECT_EQ(placement.opened, 1);
}

TEST(Reserve, D8_counts_what_large_demands_could_not_use) {
  // A tenth of the pods want two devices and eight cores, of model 0 alone.
  const std::vector<Reserve::Want> wants = {{0, 1, 1'000, 9}, {1, 2, 8'000, 1}};
  const Reserve reserve(wants, 5);
  const std::int64_t half = potential_unit / 2;  // five times a tenth
  EXPECT_EQ(reserve.unusable(0, 8'000, 2'500, 2), 500 * half) << "but the half device";
  EXPECT_EQ(reserve.unusable(0, 8'000, 2'500, 1), 2'500 * half) << "one device is not enough";
  EXPECT_EQ(reserve.unusable(0, 7'999, 2'500, 2), 2'500 * half) << "too few cores";
  EXPECT_EQ(reserve.unusable(1, 8'000, 2'500, 2), 2'500 * half) << "another model";
  EXPECT_EQ(Reserve().unusable(0, 8'000, 2'500, 2), 0);
}

// A small pool with all kinds of pods: every policy, both ways with ties.
Workload small_workload() {
  std::vector<trace::OpenbNode> nodes;
  for (int n = 0; n < 24; ++n) {
    nodes.push_back({"n" + std::to_string(n), 32'000 + n % 3 * 16'000,
                     MiB(100'000 + n % 2 * 100'000), n % 3 == 0 ? 2 : 8,
                     n % 3 == 0 ? "T4" : "A100"});
  }
  std::vector<trace::OpenbPod> pods;
  for (int p = 0; p < 160; ++p) {
    const std::int32_t gpus = p % 11 == 0 ? 0 : p % 13 == 0 ? 8 : p % 7 == 0 ? 2 : 1;
    const std::int64_t each = gpus == 0 ? 0 : gpus > 1 || p % 2 == 0 ? 1000 : 100 + p % 9 * 100;
    pods.push_back({"p" + std::to_string(p), 500 + p % 5 * 1500, MiB(4'000 + p % 4 * 9'000), gpus,
                    MilliGpu(each), gpus == 1 && p % 5 == 0 ? "T4" : ""});
  }
  auto workload = make_workload(nodes, pods);
  EXPECT_TRUE(workload);
  return std::move(*workload);
}

TEST(Policies, D8_no_policy_refuses_what_fits_and_all_repeat_themselves) {
  const Workload workload = small_workload();
  const trace::OpenbOrder order = draw_order(workload, 7);
  std::vector<std::pair<std::string, Knowledge>> policies = {{"neap", Knowledge::online}};
  for (const std::string& name : policy_names()) policies.emplace_back(name, Knowledge::given);
  for (const auto& [name, knowledge] : policies) {
    for (const Ties ties : {Ties::fixed, Ties::random}) {
      std::vector<Outcome> outcomes;
      for (int repeat = 0; repeat < 2; ++repeat) {
        Cluster cluster = workload.cluster(order.nodes);
        const auto policy = make_policy(name, workload, cluster, {7, ties}, knowledge);
        outcomes.push_back(run_protocol(workload, order.pods, cluster, *policy));
      }
      EXPECT_EQ(outcomes[0].refused_though_feasible, 0) << name;
      EXPECT_EQ(outcomes[0].allocated.values, outcomes[1].allocated.values) << name;
      EXPECT_EQ(outcomes[0].fragmented.values, outcomes[1].fragmented.values) << name;
    }
  }
}

TEST(Experiment, D8_reports_one_object_and_names_wrong_files) {
  Experiment experiment;
  experiment.nodes = "absent.csv";
  const auto outcome = run_experiment(experiment);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::not_found);
  EXPECT_EQ(outcome.error().context, "absent.csv");
  const std::string json = json_of(experiment, Outcome{});
  EXPECT_EQ(json.substr(0, 60), R"({"policy":"neap","seed":42,"ties":"fixed","alloc_pct":[0.00,)");
  EXPECT_NE(json.find(R"("unallocated_at_100":100.00)"), std::string::npos);
  EXPECT_EQ(json.substr(json.size() - 16), R"("learn":"given"})");
}

}  // namespace
}  // namespace neap::simulate
