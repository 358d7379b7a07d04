// The planner against brute force, and what holds of every plan (D8, B1). Each property is shown
// able to fail by a planted fault.
#include "core/rules/partition/plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/rules/partition/testing/any_devices.h"
#include "core/rules/partition/testing/brute_force.h"

namespace neap::mig {
namespace {

using testing::best_by_force;
using testing::Draw;
using testing::faults_of;

std::uint64_t cases() {
  const char* given = std::getenv("NEAP_MIG_CASES");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 400;
}

struct Scene {
  std::vector<Device> devices;
  std::vector<Want> wants;
};

// One to four devices; what is wanted grows smaller as they grow more, so that trying all ends.
Scene scene_of(std::uint64_t seed) {
  Draw draw(seed);
  Scene scene;
  const std::size_t count = 1 + draw.below(4);
  scene.devices = draw.devices(count);
  scene.wants = draw.wants(scene.devices, 1 + draw.below(5 - count + 1),
                           static_cast<std::int64_t>(count == 1 ? 7 : 5));
  return scene;
}

std::string text_of(const Score& s) {
  return std::to_string(s.worth) + " worth, " + std::to_string(s.cost.touched) + " touched, " +
         std::to_string(s.cost.churn) + " churn, " + std::to_string(s.cost.not_whole) +
         " not whole, " + std::to_string(s.cost.closed) + " closed";
}

TEST(MigPlanProperty, AsGoodAsBruteForceOnOneToFourDevices) {
  std::uint64_t compared = 0;
  std::uint64_t differ = 0;
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 1; compared < cases(); ++seed) {
    const Scene scene = scene_of(seed);
    const auto best = best_by_force(scene.devices, scene.wants, 3'000'000);
    if (!best) continue;
    const auto plan = make_plan(scene.devices, scene.wants);
    ASSERT_TRUE(plan) << to_string(plan.error());
    ++compared;
    sizes.insert(scene.devices.size());
    ASSERT_EQ(plan->method, Method::exact);
    const auto faults = faults_of(*plan, scene.devices, scene.wants);
    ASSERT_TRUE(faults.empty()) << "seed " << seed << ": " << faults.front();
    const Score found = testing::score_of(*plan, scene.devices, scene.wants);
    EXPECT_EQ(found, plan->score) << "seed " << seed << ": " << text_of(found) << " / "
                                  << text_of(plan->score);
    if (found != *best) ++differ;
    EXPECT_EQ(found, *best) << "seed " << seed << ": " << text_of(found) << " / " << text_of(*best);
  }
  EXPECT_EQ(sizes.size(), 4U);
  std::printf("mig: %llu random cases on 1 to 4 devices, %llu differ from brute force\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(differ));
}

// Planted: a planner that begins by clearing the device. Brute force finds a cheaper plan.
TEST(MigPlanProperty, ClearingFirstIsSeen) {
  std::uint64_t seen = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Scene scene = scene_of(seed);
    const auto best = best_by_force(scene.devices, scene.wants, 100'000);
    if (!best) continue;
    std::vector<Device> cleared = scene.devices;
    for (Device& device : cleared) {
      if (!is_busy(device)) device.instances.clear();
    }
    Plan plan = *make_plan(cleared, scene.wants);
    std::vector<Step> clearing;
    for (std::uint32_t d = 0; d < cleared.size(); ++d) {
      if (is_busy(scene.devices[d])) continue;
      for (const Place& place : places_of(scene.devices[d])) {
        clearing.push_back({StepKind::destroy, d, place});
      }
    }
    plan.steps.insert(plan.steps.begin(), clearing.begin(), clearing.end());
    if (testing::score_of(plan, scene.devices, scene.wants) < *best) ++seen;
  }
  EXPECT_GT(seen, 10U);
}

// Planted: a planner that takes busy instances for idle.
TEST(MigPlanProperty, TouchingABusyDeviceIsSeen) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Scene scene = scene_of(seed);
    std::vector<Device> blind = scene.devices;
    for (Device& device : blind) {
      for (Instance& instance : device.instances) instance.use = Use::idle;
    }
    const Plan plan = *make_plan(blind, scene.wants);
    for (const std::string& fault : faults_of(plan, scene.devices, scene.wants)) {
      seen.insert(fault);
    }
  }
  EXPECT_TRUE(seen.contains("a step on a busy device"));
  EXPECT_TRUE(seen.contains("a busy instance serves"));
}

// Planted: a table in which 4g may start in the second half as well.
TEST(MigPlanProperty, AWrongPlacementInATableIsSeen) {
  const DeviceModel& right = *find_model("A100-80G");
  DeviceModel wrong = right;
  wrong.table[5].starts = 0b0001'0001;
  wrong.table[5].count_max = 2;
  const std::vector<Want> wants = {{"4g.40gb", {}, 2, 1}};
  const std::vector<Device> believed(2, Device{&wrong, {{{4, 0}, Use::idle}}});
  const std::vector<Device> devices(2, Device{&right, {{{4, 0}, Use::idle}}});
  const Plan plan = *make_plan(believed, wants);
  const auto faults = faults_of(plan, devices, wants);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front(), "a state on the way is not legal");
  EXPECT_TRUE(faults_of(*make_plan(devices, wants), devices, wants).empty());
}

// Planted: steps in another order. Only the states on the way can tell.
TEST(MigPlanProperty, CreatingBeforeDestroyingIsSeen) {
  std::uint64_t seen = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scene scene = scene_of(seed);
    Plan plan = *make_plan(scene.devices, scene.wants);
    std::stable_partition(plan.steps.begin(), plan.steps.end(),
                          [](const Step& step) { return step.kind == StepKind::create; });
    for (const std::string& fault : faults_of(plan, scene.devices, scene.wants)) {
      if (fault == "a state on the way is not legal") ++seen;
    }
  }
  EXPECT_GT(seen, 10U);
}

// Another program begins and ends work and cuts devices while the plan is carried out; now and
// then the executor is gone and begins again with the plan it kept.
class Execution {
 public:
  explicit Execution(std::uint64_t seed) : draw_(seed) {}

  void run() {
    devices_ = draw_.devices(1 + draw_.below(4));
    wants_ = draw_.wants(devices_, 1 + draw_.below(3), 4);
    plan_ = *make_plan(devices_, wants_);
    for (int turn = 0; turn < 200; ++turn) {
      const Review at = review(plan_, devices_);
      if (!holds(plan_, at)) {
        plan_ = *make_plan(devices_, wants_);
        ++replanned;
        continue;
      }
      if (at.next == plan_.steps.size()) break;
      step(at.next);
      if (turn < 8 && draw_.chance(30)) disturb();
    }
    finished = review(plan_, devices_).next == plan_.steps.size();
    // What the last plan promised is there.
    for (const Serve& serve : plan_.serves) {
      const auto places = places_of(devices_[serve.device]);
      if (std::count(places.begin(), places.end(), serve.place) == 0) kept = false;
    }
  }

  int replanned = 0;
  int touched_busy = 0;
  int illegal = 0;
  bool finished = false;
  bool kept = true;

 private:
  void step(std::size_t index) {
    const Step& step = plan_.steps[index];
    if (state_of(step, devices_) != StepState::ready) return;
    if (is_busy(devices_[step.device])) ++touched_busy;
    take(step, devices_);
    const Device& device = devices_[step.device];
    if (!testing::can_be_together(*device.model, places_of(device))) ++illegal;
  }

  void disturb() {
    Device& device = devices_[draw_.below(devices_.size())];
    if (draw_.chance(30)) {
      device = draw_.device(*device.model);
    } else if (!device.instances.empty()) {
      Instance& instance = device.instances[draw_.below(device.instances.size())];
      instance.use = instance.use == Use::busy ? Use::idle : Use::busy;
    }
  }

  Draw draw_;
  std::vector<Device> devices_;
  std::vector<Want> wants_;
  Plan plan_;
};

TEST(MigPlanProperty, CarriedOutWhileDevicesChange) {
  int replanned = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Execution execution(seed);
    execution.run();
    ASSERT_TRUE(execution.finished) << "seed " << seed;
    ASSERT_TRUE(execution.kept) << "seed " << seed;
    ASSERT_EQ(execution.touched_busy, 0) << "seed " << seed;
    ASSERT_EQ(execution.illegal, 0) << "seed " << seed;
    replanned += execution.replanned;
  }
  EXPECT_GT(replanned, 40);
  std::printf("mig: 400 plans carried out while devices changed, %d planned anew\n", replanned);
}

// After any number of steps the plan, kept as a value, knows how far it is.
TEST(MigPlanProperty, ResumesAfterACrashAnywhere) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scene scene = scene_of(seed);
    const Plan plan = *make_plan(scene.devices, scene.wants);
    std::vector<Device> devices = scene.devices;
    for (std::size_t done = 0; done <= plan.steps.size(); ++done) {
      const Review at = review(plan, devices);
      ASSERT_EQ(at.done, done) << "seed " << seed;
      ASSERT_EQ(at.next, done) << "seed " << seed;
      ASSERT_EQ(at.refused, plan.steps.size()) << "seed " << seed;
      if (done < plan.steps.size()) take(plan.steps[done], devices);
    }
    // Planned again, nothing is left to do.
    EXPECT_TRUE(make_plan(devices, scene.wants)->steps.empty()) << "seed " << seed;
  }
}

// The bounded search, as used for many devices, on cases that the exact one solves.
TEST(MigPlanProperty, TheBoundedSearchStaysWithinItsBound) {
  std::int64_t best = 0;
  std::int64_t bounded = 0;
  std::int64_t bound = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Scene scene = scene_of(seed);
    const Demand demand = demand_of(scene.wants, scene.devices);
    const LayoutBook book(demand);
    std::vector<Group> groups;
    for (std::uint32_t d = 0; d < scene.devices.size(); ++d) {
      groups.push_back({options_of(scene.devices[d], demand, book), {d}});
    }
    const Choice exact = *search_exact(groups, demand, 1'000'000);
    const Choice quick = search_bounded(groups, demand);
    ASSERT_LE(quick.score, exact.score) << "seed " << seed;
    ASSERT_GE(quick.worth_bound, exact.score.worth) << "seed " << seed;
    best += exact.score.worth;
    bounded += quick.score.worth;
    bound += quick.worth_bound;
  }
  EXPECT_GE(bounded * 100, best * 98);
  std::printf("mig: bounded search serves %lld of %lld, its bound says %lld\n",
              static_cast<long long>(bounded), static_cast<long long>(best),
              static_cast<long long>(bound));
}

TEST(MigPlanProperty, TenThousandDevices) {
  Draw draw(1);
  const DeviceModel& model = *find_model("A100-80G");
  std::vector<Device> devices;
  for (int i = 0; i < 10'000; ++i) devices.push_back(draw.device(model));
  const std::vector<Want> wants = {{"3g.40gb", {}, 4000, 4},
                                   {"1g.10gb", {}, 30'000, 1},
                                   {"2g.20gb", {}, 6000, 2},
                                   {"7g.80gb", {}, 900, 9},
                                   {"4g.40gb", {}, 3000, 5}};
  const auto plan = make_plan(devices, wants);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->method, Method::bounded);
  const auto faults = faults_of(*plan, devices, wants);
  EXPECT_TRUE(faults.empty()) << faults.front();
  EXPECT_GE(plan->score.worth * 1000, plan->worth_bound * 995);
  std::printf("mig: 10,000 devices, weight served %lld, bound %lld\n",
              static_cast<long long>(plan->score.worth), static_cast<long long>(plan->worth_bound));
}

}  // namespace
}  // namespace neap::mig
