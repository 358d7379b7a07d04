// The reference policies of the lending experiment on workloads small enough to reckon by hand.
#include "simulate/loaning/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "simulate/loaning/nodes.h"
#include "simulate/loaning/policy.h"
#include "simulate/loaning/workload.h"

namespace neap::loaning::simulation_test {
namespace {

constexpr std::int64_t begin_s = scored_from_s;
constexpr std::size_t minutes = span_days * 1'440;

Job job(std::int64_t after_s, std::int32_t devices, std::int64_t duration_s) {
  Job made;
  made.arrival_s = begin_s + after_s;
  made.devices = devices;
  made.duration_s = made.estimate_s = duration_s;
  made.phase_s = interval_s;
  made.restore_s = 100;
  return made;
}

// Two nodes for training, two for inference.
Workload small(std::vector<Job> jobs) {
  return {std::move(jobs), std::vector<std::int32_t>(minutes, 0), 4, 2};
}

// From `minute` after the scored days began, `devices` are asked for.
Workload with_demand(Workload workload, std::size_t minute, std::int32_t devices) {
  const auto from = static_cast<std::ptrdiff_t>(begin_s / 60) + static_cast<std::ptrdiff_t>(minute);
  std::fill(workload.demand_milli.begin() + from, workload.demand_milli.end(), devices * 1'000);
  return workload;
}

Policy named(const char* name) { return *policy_named(name); }

TEST(Loaning, backfill_does_not_delay_the_first_that_waits) {
  // 16 devices wait for the first job; what ends before it may pass, what ends later may not.
  const Workload workload = small({job(0, 8, 100), job(1, 16, 10), job(2, 8, 50), job(60, 8, 200)});
  const Outcome outcome = simulate(workload, named("A"), 32);
  EXPECT_EQ(outcome.jobs, 4);
  EXPECT_EQ(outcome.unfinished, 0);
  EXPECT_DOUBLE_EQ(outcome.wait_s, (0 + 99 + 0 + 50) / 4.0);
  EXPECT_DOUBLE_EQ(outcome.completion_s, outcome.wait_s + (100 + 10 + 50 + 200) / 4.0);
}

TEST(Loaning, backfill_believes_the_estimates) {
  Workload workload = small({job(0, 8, 100), job(1, 16, 10), job(60, 8, 200)});
  workload.jobs[2].estimate_s = 30;
  EXPECT_DOUBLE_EQ(simulate(workload, named("A"), 32).wait_s, (0 + 259 + 0) / 3.0);
}

TEST(Loaning, a_killed_job_does_again_what_it_did_since_its_checkpoint) {
  // Core is full; the second job is on the lendable nodes when 8 devices are asked for.
  const Workload workload = with_demand(small({job(0, 16, 100'000), job(0, 16, 1'000)}), 15, 8);
  const Outcome outcome = simulate(workload, named("C2"), 32);
  EXPECT_EQ(outcome.preemptions, 1);
  // At 900 s it loses the 300 since its checkpoint at 600. Which of the two is younger by id.
  EXPECT_NEAR(outcome.lost_device_h * 3'600, 300.0 * 16, 1e-6);
  // 5 s to be killed and 45 to load, in one minute, of all that is asked for until the end.
  const double asked_s = static_cast<double>(scored_to_s - scored_from_s - 900);
  EXPECT_NEAR(outcome.short_requests, 50 / asked_s, 1e-12);
  EXPECT_NEAR(outcome.short_slots, 60.0 / (scored_to_s - scored_from_s), 1e-12);
}

TEST(Loaning, a_checkpoint_on_demand_loses_no_work_and_costs_a_restore) {
  const Workload workload = with_demand(small({job(0, 16, 2'000), job(0, 16, 1'000)}), 15, 8);
  Policy policy = named("E*");
  policy.buffer = 0;
  const Outcome outcome = simulate(workload, policy, 32);
  EXPECT_EQ(outcome.preemptions, 1);
  EXPECT_EQ(outcome.lost_device_h, 0);
  // Out at 900, devices free at 920. 23 remain: a gang of 16 needs two whole nodes, at 2,000.
  EXPECT_DOUBLE_EQ(outcome.wait_s, (2'000 - 920) / 2.0);
  EXPECT_DOUBLE_EQ(outcome.completion_s, (2'000 + 2'000 + 100 + 100) / 2.0);
}

TEST(Loaning, the_clairvoyant_is_never_short_and_switches_for_nothing) {
  const Workload workload = with_demand(small({job(0, 16, 2'000), job(0, 8, 1'000)}), 10, 12);
  const Outcome outcome = simulate(workload, named("O"), 32);
  EXPECT_EQ(outcome.short_slots, 0);
  EXPECT_EQ(outcome.short_requests, 0);
  EXPECT_EQ(outcome.overhead, 0);
  EXPECT_EQ(outcome.lost_device_h, 0);
}

TEST(Loaning, two_clusters_hold_the_peak_and_lend_nothing) {
  const Workload workload = with_demand(small({job(0, 16, 1'000), job(0, 1, 1'000)}), 0, 4);
  const Outcome outcome = simulate(workload, named("A"), 32);
  EXPECT_DOUBLE_EQ(outcome.held_replicas, 16);
  EXPECT_EQ(outcome.short_slots, 0);
  EXPECT_DOUBLE_EQ(outcome.wait_s, 500);  // of the second, although 12 replicas have nothing to do
}

TEST(Loaning, useful_work_is_training_and_what_was_served) {
  const Workload workload = with_demand(small({job(0, 16, 10'000)}), 0, 4);
  const Outcome outcome = simulate(workload, named("A"), 32);
  const double scored_s = static_cast<double>(scored_to_s - scored_from_s);
  EXPECT_NEAR(outcome.effective, (16 * 10'000.0 + 4 * scored_s) / (32 * scored_s), 1e-12);
}

TEST(Loaning, places_on_the_fullest_node_that_fits_and_the_core_first) {
  Nodes nodes({32, 16}, {});
  EXPECT_EQ(nodes.first_lendable(), 2);
  nodes.take({1, 5});
  EXPECT_EQ(nodes.find(3).front().node, 1);
  EXPECT_EQ(nodes.find(4).front().node, 0);
  nodes.take({0, 8});
  nodes.take({1, 3});
  EXPECT_EQ(nodes.find(1).front().node, 2);
  const auto gang = nodes.find(12);
  ASSERT_EQ(gang.size(), 2U);
  EXPECT_EQ(gang[0].devices, 8);
  EXPECT_EQ(gang[1].devices, 4);
  EXPECT_TRUE(nodes.find(17).empty());
  Nodes uneven({32, 16}, {PlaceOrder::core_first, Gangs::uneven});
  uneven.take({0, 8});
  uneven.take({1, 3});
  uneven.take({2, 7});
  const auto parts = uneven.find(12);  // of the fullest: 8 and 4 of 5
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].node, 3);
  EXPECT_EQ(parts[1].node, 1);
  EXPECT_EQ(uneven.find(14).size(), 3U);
  EXPECT_EQ(Nodes({31, 16}, {}).first_lendable(), 1);  // the last has 7
}

TEST(Loaning, every_policy_and_ablation_finishes_all_jobs_and_uses_no_more_than_there_is) {
  std::vector<Job> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(job(i * 40, 1 + i * 7 % 16, 300 + i * 37 % 4'000));
  Workload workload = small(std::move(jobs));
  for (std::size_t m = 0; m < minutes; ++m) {
    workload.demand_milli[m] =
        static_cast<std::int32_t>(7'900 - 7'900 * std::cos(static_cast<double>(m) / 50));
  }
  std::vector<Policy> policies = ablations();
  for (const char* name : {"A", "B", "C2", "D", "E*", "O"}) policies.push_back(named(name));
  for (const Policy& policy : policies) {
    const Outcome outcome = simulate(workload, policy, 32);
    EXPECT_EQ(outcome.unfinished, 0) << policy.name;
    EXPECT_LE(outcome.effective, 1) << policy.name;
    double work_s = 0;
    for (const Job& each : workload.jobs) work_s += double(each.devices * each.duration_s);
    EXPECT_NEAR(outcome.training_used * 32 * (scored_to_s - scored_from_s), work_s, 1)
        << policy.name;
  }
}

}  // namespace
}  // namespace neap::loaning::simulation_test
