// F9: a workload through the daemon's own engine in virtual time.
#include "simulate/run/run.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "simulate/run/study.h"
#include "simulate/run/testing/scratch.h"

namespace neap::whatif {
namespace {

using testing::job_line;
using testing::outcome_of;
using testing::rate_line;
using testing::Scratch;
using testing::spec_of;

constexpr std::int64_t second = 1'000'000;
// A simulated process is gone half a second after its last step.
constexpr std::int64_t exit_us = 500'000;

// By hand: one device; a runs 100 s, b waits for it, c comes when b is on its way.
TEST(Run, F9_WaitsAndCompletionAsByHand) {
  const Scratch scratch;
  const std::string workload = scratch.workload(
      job_line(0, "a", 1, 100) + job_line(10, "b", 1, 50) + job_line(120, "c", 1, 30));
  const Outcome o = outcome_of(spec_of("1x1xA100-80G", workload));
  EXPECT_EQ(o.all.jobs, 3);
  EXPECT_EQ(o.all.finished, 3);
  // a: 0 to 100.5; b: waits 90.5, to 151; c: waits 31, to 181.5.
  EXPECT_EQ(o.all.wait.mean_us, (0 + 90'500'000 + 31'000'000) / 3);
  EXPECT_EQ(o.all.wait.p50_us, 31 * second);
  EXPECT_EQ(o.all.wait.max_us, 90 * second + exit_us);
  EXPECT_EQ(o.all.completion.mean_us, (100'500'000 + 141'000'000 + 61'500'000) / 3);
  EXPECT_EQ(o.end_us - o.begin_us, 181 * second + exit_us);
  EXPECT_EQ(o.allocated_ppm, 1'000'000);
  EXPECT_EQ(o.fragmented_ppm, 0);
  EXPECT_EQ(o.all.held_device_us, 181 * second + exit_us);
  EXPECT_EQ(o.all.preemptions, 0);
  // Of 181.5 s, all but three half seconds were steps that a finished task made.
  EXPECT_EQ(o.effective_ppm, 991'735);  // 180 / 181.5
}

TEST(Run, F9_TeamsTiersAndDeadlines) {
  const Scratch scratch;
  const std::string workload =
      scratch.workload(job_line(0, "a", 1, 100, ",\"group\":\"red\",\"deadline_us\":200000000") +
                       job_line(0, "b", 1, 100, ",\"group\":\"blue\",\"deadline_us\":90000000"));
  const Outcome o = outcome_of(
      spec_of("1x2xA100-80G", workload,
              {"priority_tiers=[{name: infer, weight: 9}, {name: train_deadline_near, weight: 8}, "
               "{name: train_normal, weight: 4}]"}));
  EXPECT_EQ(o.all.with_deadline, 2);
  EXPECT_EQ(o.all.deadlines_met, 1);
  EXPECT_EQ(o.tiers.at("train_deadline_near").jobs, 2);
  EXPECT_EQ(o.tiers.count("train_normal"), 0U);
  EXPECT_EQ(o.teams.at("red").deadlines_met, 1);
  EXPECT_EQ(o.teams.at("blue").held_device_us, 100 * second + exit_us);
}

// A workload larger than the cluster can ever hold: said, and the rest goes on.
TEST(Run, F9_WhatCanNeverStartIsSaidWithItsReason) {
  const Scratch scratch;
  const std::string workload =
      scratch.workload(job_line(0, "fits", 8, 100) + job_line(0, "giant", 17, 100) +
                       job_line(0, "other", 1, 10, ",\"models\":\"H100\""));
  const Outcome o = outcome_of(spec_of("2x8xA100-80G", workload));
  EXPECT_EQ(o.all.finished, 1);
  EXPECT_EQ(o.all.refused, 2);
  ASSERT_EQ(o.never_started.size(), 2U);
  EXPECT_EQ(o.never_started[0].reason, "refused: device_models");
  EXPECT_EQ(o.never_started[0].example, "other");
  EXPECT_EQ(o.never_started[1].reason, "refused: gpus");
  EXPECT_EQ(o.never_started[1].detail,
            "17 devices are asked for, the pool has 16 that could serve");
}

// A guard leaves too little for it: it waits until the run ends, and is shown with its reason.
TEST(Run, F9_WhoWaitsForEverEndsTheRun) {
  const Scratch scratch;
  const std::string workload = scratch.workload(job_line(0, "wide", 8, 100));
  const Outcome o = outcome_of(spec_of("1x8xA100-80G", workload, {"pool.inference_guard_min=4"}));
  EXPECT_EQ(o.all.started, 0);
  EXPECT_EQ(o.all.unfinished, 1);
  ASSERT_EQ(o.never_started.size(), 1U);
  EXPECT_EQ(o.never_started[0].reason, "guard");
  EXPECT_EQ(o.never_started[0].example, "wide");
  EXPECT_FALSE(o.never_started[0].detail.empty());
}

// S4: by day the service takes devices at boundaries, and training gets them back.
TEST(Run, F9_S4_AServiceRisesAndTrainingYieldsAtBoundaries) {
  const Scratch scratch;
  std::string lines = rate_line(0, "chat", 5);
  for (int i = 0; i < 8; ++i) lines += job_line(1, "t" + std::to_string(i), 1, 40'000);
  lines += rate_line(7'200, "chat", 40) + rate_line(20'000, "chat", 1);
  const Outcome o = outcome_of(spec_of("1x8xA100-80G", scratch.workload(lines)));
  EXPECT_GT(o.all.preemptions, 0);
  EXPECT_EQ(o.all.finished, 8);
  EXPECT_EQ(o.all.lost_device_us, 0) << "yields are at boundaries";
  ASSERT_EQ(o.services.size(), 1U);
  EXPECT_GE(o.services[0].most_replicas, 4);
  EXPECT_GT(o.services[0].served_ppm, 500'000);
  EXPECT_GT(o.all.mean_waiting_us, o.all.wait.mean_us);
}

// The same inputs give the same bytes, and another seed another workload.
TEST(Run, F9_SameInputsSameBytes) {
  const auto study = [](std::uint64_t seed) {
    Study study;
    study.cluster = *cluster_of_text("4x8xA100-80G");
    study.policies = {*load_policy("", {}), *load_policy("", {"preempt.enabled=false"})};
    study.workload.generated = Generated{.kind = "tide", .jobs = 300, .load = Ppm(900'000)};
    study.workload.generated->devices = study.cluster.devices();
    study.workload.generated->service = "chat";
    study.workload.generated->replica_rate_micro = study.workload.replica.rate_micro;
    study.workload.contract.sdk = true;
    study.workload.replica.max = 32;
    study.workload.jitter = Ppm(100'000);
    study.seeds = {seed, seed + 1};
    const auto outcome = run_study(study, {});
    EXPECT_TRUE(outcome);
    return std::vector<std::string>{json_of(study, *outcome, WithCurves::yes), csv_of(*outcome),
                                    curves_csv_of(*outcome)};
  };
  const auto first = study(7);
  EXPECT_EQ(first, study(7));
  EXPECT_NE(first, study(9));
}

// Chance takes a job for what it is, so that two policies meet the same workload.
TEST(Run, F9_PoliciesMeetTheSameDrawnJobs) {
  const Scratch scratch;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += job_line(i * 100, "j" + std::to_string(i), 1, 1'000);
  const std::string workload = scratch.workload(lines);
  const auto held = [&](const char* cluster, std::uint64_t seed) {
    RunSpec spec = spec_of(cluster, workload);
    spec.workload.jitter = Ppm(500'000);
    spec.workload.sample = Ppm(500'000);
    spec.workload.seed = seed;
    const Outcome o = outcome_of(spec);
    EXPECT_NEAR(static_cast<double>(o.all.jobs), 100, 30);
    return std::pair(o.all.jobs, o.all.held_device_us);
  };
  EXPECT_EQ(held("1x8xA100-80G", 1), held("4x4xA100-80G", 1));
  EXPECT_NE(held("1x8xA100-80G", 1), held("1x8xA100-80G", 2));
}

TEST(Run, F9_UntilCutsARunOff) {
  const Scratch scratch;
  RunSpec spec = spec_of("1x1xA100-80G", scratch.workload(job_line(0, "a", 1, 100'000)));
  spec.until = hours(1);
  const Outcome o = outcome_of(spec);
  EXPECT_TRUE(o.cut_off);
  EXPECT_EQ(o.end_us - o.begin_us, 3'600 * second);
  EXPECT_EQ(o.all.unfinished, 1);
  EXPECT_EQ(o.all.held_device_us, 3'600 * second);
}

TEST(Run, TracesKeepTheirTimeOfDay) {
  const Scratch scratch;
  const std::string philly = scratch.write("p.csv",
                                           "timestamp,duration,num_gpus,cluster\n"
                                           "2017-10-09 07:30:00,60,1,x\n"
                                           "2017-10-09 07:00:00,60,1,x\n");
  RunSpec spec = spec_of("1x1xA100-80G", philly);
  spec.workload.files.push_back(scratch.workload(job_line(3'600, "own", 1, 60)));
  const Outcome o = outcome_of(spec);
  EXPECT_EQ(o.begin_us, 3'600 * second) << "the own workload begins at 1 h of the same day";
  EXPECT_EQ(o.last_arrival_us, 27'000 * second);
  EXPECT_EQ(o.all.jobs, 3);
}

// Found by the fuzz target: the clock may not go back before the first midnight.
TEST(Run, F9_TracesOfBefore1970KeepTheirTimeOfDay) {
  const Scratch scratch;
  const std::string philly = scratch.write("p.csv",
                                           "timestamp,duration,num_gpus,cluster\n"
                                           "1969-12-30 07:30:00,60,1,x\n"
                                           "1970-01-02 00:00:00,60,1,x\n");
  const Outcome o = outcome_of(spec_of("1x1xA100-80G", philly));
  EXPECT_EQ(o.begin_us, 27'000 * second);
  EXPECT_EQ(o.last_arrival_us, 3 * 86'400 * second);
  EXPECT_EQ(o.all.finished, 2);
}

// One who learns from the run puts facts in at the very moment.
TEST(Run, ALearnerIsAskedAfterEachStep) {
  const Scratch scratch;
  const std::string workload = scratch.workload(job_line(0, "a", 1, 100));
  int asked = 0;
  std::vector<std::string> seen;
  Hooks hooks;
  hooks.learn = [&](const PoolState& state, const StepResult& /*result*/) {
    std::vector<Event> facts;
    if (++asked == 1) facts.emplace_back(PauseRequested{"learner", "a test"});
    seen.emplace_back(state.pause.active ? "paused" : "open");
    return facts;
  };
  outcome_of(spec_of("1x1xA100-80G", workload), hooks);
  ASSERT_GE(seen.size(), 2U);
  EXPECT_EQ(seen[0], "open");
  EXPECT_EQ(seen[1], "paused");
}

TEST(Run, AnErrorInTheMiddleOfAWorkloadNamesItsLine) {
  const Scratch scratch;
  const std::string workload = scratch.workload(job_line(0, "a", 1, 100) + "{\"at_us\":-1}\n");
  const auto outcome = run_once(spec_of("1x1xA100-80G", workload), {});
  ASSERT_FALSE(outcome);
  EXPECT_NE(to_string(outcome.error()).find("workload.jsonl:3: at_us"), std::string::npos)
      << to_string(outcome.error());
}

}  // namespace
}  // namespace neap::whatif
