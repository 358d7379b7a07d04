// Lending against two clusters on recorded jobs and traffic: a slice of what the bench measures
// (docs/time-sharing-evidence.md), and the simulation of the reference policies against the engine.
#include "simulate/run/loaning/engine_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "simulate/loaning/policy.h"
#include "simulate/loaning/simulation.h"
#include "simulate/loaning/workload.h"
#include "simulate/run/policy.h"

namespace neap::whatif {
namespace {

using loaning::Outcome;
using loaning::Workload;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t last_seed = 11;
#else
constexpr std::uint64_t last_seed = 12;
#endif
constexpr std::int32_t devices = 512, fewer = 399;

class Loaning : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("NEAP_TRACES");
    if (folder == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
    auto recorded = loaning::read_recorded(folder);
    ASSERT_TRUE(recorded) << recorded.error().message;
    recorded_ = std::move(*recorded);
  }

  [[nodiscard]] Workload workload(std::uint64_t seed) const {
    loaning::WorkloadSpec spec;
    spec.seed = seed;
    return make_workload(recorded_, spec);
  }

  static Outcome engine(const Workload& workload, std::int32_t count,
                        EngineRun::Service service = EngineRun::Service::shares,
                        const std::vector<std::string>& sets = {}) {
    auto pool = load_policy(NEAP_SOURCE_DIR "/bench/loaning/neap.yaml", sets);
    EXPECT_TRUE(pool) << pool.error().message;
    const auto outcome =
        run_loaning(workload, {*pool, count, service, EngineRun::Saves::on_demand});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return *outcome;
  }

  static Outcome reference(const Workload& workload, const char* name, std::int32_t count) {
    return loaning::simulate(workload, *loaning::policy_named(name), count);
  }

  loaning::Recorded recorded_;
};

// Jobs of one device leave no choice but their order: there the two must agree.
TEST_F(Loaning, the_simulation_agrees_with_the_engine_on_the_training_cluster) {
  loaning::WorkloadSpec spec;
  spec.nodes = 16;
  spec.largest_gang = 1;
  for (std::uint64_t seed = 11; seed <= last_seed; ++seed) {
    spec.seed = seed;
    const Workload drawn = make_workload(recorded_, spec);
    const Outcome simulated = reference(drawn, "A", 128);
    const Outcome ours = engine(drawn, 128 - drawn.peak(), EngineRun::Service::none);
    ASSERT_GT(simulated.wait_s, 60);
    EXPECT_EQ(ours.jobs, simulated.jobs);
    EXPECT_NEAR(ours.wait_s / simulated.wait_s, 1, 0.01) << "seed " << seed;
    EXPECT_NEAR(ours.completion_s / simulated.completion_s, 1, 0.01) << "seed " << seed;
  }
}

// With gangs where they are placed is a choice, and the engine's is not the simulation's to the
// device: a few percent.
TEST_F(Loaning, with_gangs_the_simulation_agrees_where_it_queues_as_the_engine_does) {
  for (std::uint64_t seed = 11; seed <= last_seed; ++seed) {
    const Workload drawn = workload(seed);
    const Outcome simulated = reference(drawn, "A greedy", devices);
    const Outcome ours = engine(drawn, devices - drawn.peak(), EngineRun::Service::none,
                                {"placement.reservations=0"});
    EXPECT_NEAR(ours.wait_s / simulated.wait_s, 1, 0.1) << "seed " << seed;
    EXPECT_NEAR(ours.completion_s / simulated.completion_s, 1, 0.1) << "seed " << seed;
  }
}

TEST_F(Loaning, all_jobs_finish_on_fewer_devices_and_nothing_is_lost) {
  for (std::uint64_t seed = 11; seed <= last_seed; ++seed) {
    const Workload drawn = workload(seed);
    const Outcome apart = reference(drawn, "A", devices);
    const Outcome shared = engine(drawn, devices);
    const Outcome small = engine(drawn, fewer);
    EXPECT_EQ(shared.jobs, apart.jobs);
    EXPECT_EQ(shared.unfinished + small.unfinished + apart.unfinished, 0);
    EXPECT_LT(shared.wait_s, apart.wait_s) << "seed " << seed;
    EXPECT_LT(shared.completion_s, apart.completion_s) << "seed " << seed;
    EXPECT_GT(small.effective, 1.2 * apart.effective) << "seed " << seed;
    EXPECT_GT(small.preemptions, 0) << "seed " << seed;
    EXPECT_EQ(shared.lost_device_h + small.lost_device_h, 0);
  }
}

TEST_F(Loaning, references_stand_in_the_order_that_they_must) {
  for (std::uint64_t seed = 11; seed <= last_seed; ++seed) {
    const Workload drawn = workload(seed);
    const Outcome naive = reference(drawn, "C2", fewer);
    const Outcome planned = reference(drawn, "E*", fewer);
    const Outcome clairvoyant = reference(drawn, "O", fewer);
    EXPECT_LT(clairvoyant.wait_s, planned.wait_s) << "seed " << seed;
    EXPECT_EQ(clairvoyant.short_slots, 0);
    EXPECT_LT(planned.preemptions, naive.preemptions) << "seed " << seed;
    EXPECT_EQ(planned.lost_device_h, 0);
    EXPECT_GT(naive.lost_device_h, 0);
    EXPECT_LT(planned.short_requests, naive.short_requests) << "seed " << seed;
  }
}

TEST_F(Loaning, a_run_of_the_engine_is_the_same_again) {
  loaning::WorkloadSpec spec;
  spec.nodes = 16;
  const Workload drawn = make_workload(recorded_, spec);
  const Outcome first = engine(drawn, 128);
  const Outcome again = engine(drawn, 128);
  EXPECT_EQ(first.wait_s, again.wait_s);
  EXPECT_EQ(first.effective, again.effective);
  EXPECT_EQ(first.short_requests, again.short_requests);
}

}  // namespace
}  // namespace neap::whatif
