#include "core/rules/profile.h"

#include <gtest/gtest.h>

#include "core/rules/preempt.h"
#include "core/testing/script.h"

namespace neap::profile_test {
namespace {

using testing::Script;

constexpr std::uint8_t all_open = learned_bit(Learned::work) | learned_bit(Learned::save) |
                                  learned_bit(Learned::stall) | learned_bit(Learned::restore) |
                                  learned_bit(Learned::memory);

TaskSpec of_type(const std::string& name) {
  TaskSpec task = Script::training(name);
  task.team = "vision";
  task.profile = "resnet";
  return task;
}

Script pool() {
  Script s;
  s.configure();
  s.node("n0", "d0", 4, MiB(40'960), "A100-40G");
  s.node("n1", "d0", 4);
  return s;
}

ReportStamp next_stamp(const Script& s, const std::string& name) {
  const TaskState& t = s.task(name);
  return {t.allocation, 1, t.report_epoch == 0 ? 1 : t.report_sequence + 1};
}

// It loads for a minute, saves once in `save`, uses `peak` of its device and ends after an hour.
void one_run(Script& s, const std::string& name, Micros save, MiB peak) {
  ASSERT_TRUE(s.submit(of_type(name)));
  s.started(name);
  s.pass(seconds(70));
  ASSERT_TRUE(s.event(StepsReported{next_stamp(s, name), 1, 1, seconds(10)}));
  s.pass(hours(1) - seconds(70));
  ASSERT_TRUE(s.event(CheckpointDurable{.stamp = next_stamp(s, name),
                                        .step = 100,
                                        .captured = s.now,
                                        .save = save,
                                        .stall = save / 2}));
  ASSERT_TRUE(s.event(MemoryObserved{s.task(name).allocation, peak}));
  s.exited(name, 0);
}

TEST(Profile, A3_WhatTheFileLeavesOpenComesFromRunsOfTheType) {
  Script s = pool();
  TaskSpec early = of_type("early");
  fill_open(s.state, all_open, early);
  EXPECT_EQ(early.learned, 0) << "nothing was observed";
  for (int i = 1; i <= 10; ++i) {
    one_run(s, "r" + std::to_string(i), seconds(i), MiB(1'000 * i));
  }
  TaskSpec task = of_type("next");
  fill_open(s.state, all_open, task);
  EXPECT_EQ(task.contract.save, seconds(9)) << "p90 of 1 to 10 s";
  EXPECT_EQ(task.contract.stall, milliseconds(4'500));
  EXPECT_EQ(task.contract.restore, seconds(60));
  EXPECT_EQ(task.work, hours(1));
  EXPECT_EQ(task.request.memory, MiB(10'000)) << "the highest use";
  EXPECT_EQ(task.learned, all_open);
  TaskSpec declared = of_type("declared");
  declared.contract.save = seconds(2);
  fill_open(s.state, learned_bit(Learned::restore), declared);
  EXPECT_EQ(declared.contract.save, seconds(2)) << "what is declared stands";
  EXPECT_EQ(declared.contract.restore, seconds(60));
  TaskSpec stranger = of_type("x");
  stranger.team = "speech";
  fill_open(s.state, all_open, stranger);
  EXPECT_EQ(stranger.learned, 0) << "teams do not share types";
}

TEST(Profile, A3_TheNewestObservationsCount) {
  Script s = pool();
  for (int i = 0; i < 40; ++i) {
    one_run(s, "r" + std::to_string(i), seconds(i < 20 ? 100 : 1), MiB(1'000));
  }
  const TaskProfile* profile = find_profile(s.state, "vision/resnet");
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->save.count, 40);
  EXPECT_EQ(profile->save.last.size(), observations_kept);
  EXPECT_EQ(p90_of(profile->save), seconds(1).value) << "old ones no longer count";
}

TEST(Profile, A3_TooFewObservationsSayNothing) {
  Script s = pool();
  one_run(s, "a", seconds(5), MiB(100));
  one_run(s, "b", seconds(5), MiB(100));
  TaskSpec task = of_type("c");
  fill_open(s.state, all_open, task);
  EXPECT_EQ(task.learned, 0);
  one_run(s, "c", seconds(5), MiB(100));
  fill_open(s.state, all_open, task);
  EXPECT_EQ(task.learned, all_open);
}

TEST(Profile, A3_ADeclarationBelowWhatWasSeenIsWarnedOf) {
  Script s = pool();
  for (int i = 0; i < 4; ++i) one_run(s, "r" + std::to_string(i), seconds(1), MiB(9'000));
  Request request;
  request.memory = MiB(8'192);
  EXPECT_EQ(memory_warning(s.state, "vision/resnet", request),
            "8192 MiB are declared, and 9000 MiB were in use in the newest 4 runs of "
            "vision/resnet: declare at least that");
  request.memory = MiB(9'000);
  EXPECT_EQ(memory_warning(s.state, "vision/resnet", request), "");
  EXPECT_EQ(memory_warning(s.state, "vision/other", request), "");
}

TEST(Profile, A3_MemoryThatWasSeenPicksTheSmallestModelThatHoldsIt) {
  for (const auto& [peak, node] : {std::pair(30'000, "n0"), std::pair(60'000, "n1")}) {
    Script s = pool();
    for (int i = 0; i < 3; ++i) one_run(s, "r" + std::to_string(i), seconds(1), MiB(peak));
    TaskSpec task = of_type("next");
    fill_open(s.state, all_open, task);
    ASSERT_TRUE(s.submit(task));
    const DeviceState& device = s.state.device(s.task("next").slots.front().device);
    EXPECT_EQ(s.state.node(device.node).name, node);
  }
}

TEST(Profile, A3_AutoTakesAsFewDevicesAsHoldTheModel) {
  Script s = pool();
  const auto chosen = [&](std::int64_t gib) {
    Request request;
    const auto done = choose_count(s.state, MiB(gib * 1'024), request);
    EXPECT_TRUE(done);
    return std::pair(request.count, request.memory);
  };
  EXPECT_EQ(chosen(30), std::pair(1, MiB(30 * 1'024)));
  EXPECT_EQ(chosen(70), std::pair(1, MiB(70 * 1'024)));
  EXPECT_EQ(chosen(140), std::pair(2, MiB(70 * 1'024)));
  Request small;
  small.models = {"A100-40G"};
  ASSERT_TRUE(choose_count(s.state, MiB(140 * 1'024), small));
  EXPECT_EQ(small.count, 4);
  Request unknown;
  const auto refused = choose_count(s.state, MiB(0), unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context, "gpus");
  s.state.spec.device_reserve = MiB(11 * 1'024);
  EXPECT_EQ(chosen(70).first, 2) << "the reserve is not for tasks";
}

TEST(Profile, A3_WhatWasDeclaredBeforeIsKnownOfALaterOne) {
  Script s = pool();
  TaskSpec first = of_type("first");
  first.split = {.weights = MiB(100'000), .framework = MiB(2'000)};
  ASSERT_TRUE(s.submit(first));
  EXPECT_EQ(memory_known(s.state, "vision/resnet", {}), MiB(102'000));
  EXPECT_EQ(memory_known(s.state, "vision/resnet", {.weights = MiB(1)}), MiB(1));
  EXPECT_EQ(memory_known(s.state, "vision/other", {}), MiB(0));
}

TEST(Profile, A3_ReplicasShowWhatTheyGrewTo) {
  Script s = pool();
  ServiceSpec service = Script::service("chat", 3, 3);
  service.team = "talk";
  service.profile = "llama";
  ASSERT_TRUE(s.submit(service));
  for (int i = 0; i < 3; ++i) {
    const std::string name = "chat." + std::to_string(i);
    ASSERT_TRUE(s.event(MemoryObserved{s.task(name).allocation, MiB(20'000 + i)}));
    ASSERT_TRUE(s.event(MemoryObserved{s.task(name).allocation, MiB(10)}));
  }
  const TaskProfile* profile = find_profile(s.state, "talk/llama");
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->purpose, Purpose::inference);
  EXPECT_EQ(profile->memory.count, 3);
  EXPECT_EQ(most_of(profile->memory), 20'002);
}

TEST(Profile, A3_TheirNumberIsBoundedAndTheOldestIsForgotten) {
  Script s = pool();
  for (std::size_t i = 0; i < most_profiles + 10; ++i) {
    s.pass(seconds(1));
    TaskSpec task = of_type("t" + std::to_string(i));
    task.profile = "type" + std::to_string(i);
    ASSERT_TRUE(s.submit(task));
  }
  EXPECT_EQ(s.state.profiles.known.size(), most_profiles);
  EXPECT_EQ(find_profile(s.state, "vision/type9"), nullptr);
  EXPECT_NE(find_profile(s.state, "vision/type10"), nullptr);
  const auto copy = decode_snapshot(encode_snapshot(s.state));
  ASSERT_TRUE(copy);
  EXPECT_EQ(hash_of(*copy), hash_of(s.state));
}

TEST(Profile, A3_TheTypeOfATaskThatNamesNone) {
  EXPECT_EQ(usual_profile("train-7"), "train");
  EXPECT_EQ(usual_profile("train.2024-11"), "train.2024");
  EXPECT_EQ(usual_profile("resnet50"), "resnet");
  EXPECT_EQ(usual_profile("bert"), "bert");
  EXPECT_EQ(usual_profile("a1"), "a");
}

}  // namespace
}  // namespace neap::profile_test
