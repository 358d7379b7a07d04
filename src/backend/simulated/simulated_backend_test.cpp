#include "backend/simulated/simulated_backend.h"

#include <gtest/gtest.h>

namespace neap::simulated {
namespace {

TEST(LaunchText, SaysAllAndIsReadBack) {
  Behaviour behaviour;
  behaviour.steps = 7;
  behaviour.step = seconds(3);
  behaviour.fault = Fault::ignores_term;
  const Result<Behaviour> back = parse_launch_text(launch_text(behaviour));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(launch_text(*back), launch_text(behaviour));
  EXPECT_EQ(parse_launch_text("steps=9")->steps, 9);
}

TEST(LaunchText, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"steps", "steps=", "steps=x", "steps=-1", "stepz=1", "fault=99"}) {
    EXPECT_FALSE(parse_launch_text(text).has_value()) << text;
  }
}

TEST(Timeline, KeepsOrderOfTimeAndThenOfArrival) {
  Timeline timeline;
  std::string order;
  timeline.after(seconds(2), [&] { order += 'c'; });
  timeline.after(seconds(1), [&] { order += 'a'; });
  timeline.after(seconds(1), [&] {
    order += 'b';
    timeline.at(Time(0), [&] { order += '!'; });  // a moment that has passed means now
  });
  timeline.run_until(Time(0) + seconds(3));
  EXPECT_EQ(order, "ab!c");
  EXPECT_EQ(timeline.now(), Time(0) + seconds(3));
}

// One node of two devices, a backend, and what it has reported.
class SimulatedBackendTest : public ::testing::Test {
 protected:
  SimulatedBackendTest() {
    machines_.add({.name = "n0",
                   .devices = {{.uuid = "GPU-0", .model = "A", .memory = MiB(100)},
                               {.uuid = "GPU-1", .model = "A", .memory = MiB(100)}}});
    listen();
  }

  void listen() {
    backend_.connect([this](const Event& event) { reports_.push_back(event); });
  }

  static StartTask start(std::uint64_t allocation, const Behaviour& behaviour) {
    StartTask order;
    order.allocation = AllocationId(allocation);
    order.name = "job";
    order.launch = launch_text(behaviour);
    order.contract.sdk = true;
    order.devices = {"GPU-0"};
    order.slots = {{DeviceId(0), whole_device, MiB(100)}};
    order.node = "n0";
    return order;
  }

  void run_for(Micros span) { timeline_.run_until(timeline_.now() + span); }

  template <class Report>
  std::vector<Report> all() const {
    std::vector<Report> found;
    for (const Event& event : reports_) {
      if (const auto* report = std::get_if<Report>(&event)) found.push_back(*report);
    }
    return found;
  }
  // Each report once, however often it came.
  template <class Report>
  std::vector<Report> distinct() const {
    std::map<std::uint64_t, Report> found;
    for (const Report& report : all<Report>()) found.emplace(report.stamp.sequence, report);
    std::vector<Report> out;
    for (const auto& [sequence, report] : found) out.push_back(report);
    return out;
  }

  Timeline timeline_;
  Machines machines_;
  SimulatedBackend backend_{timeline_, machines_, Network{}, Random(1)};
  std::vector<Event> reports_;
};

TEST_F(SimulatedBackendTest, RunsATaskToItsEnd) {
  backend_.carry_out(start(0, {.steps = 5, .step = seconds(10)}));
  run_for(minutes(5));
  EXPECT_EQ(distinct<TaskStarted>().size(), 1U);
  ASSERT_FALSE(distinct<StepsReported>().empty());
  EXPECT_EQ(distinct<StepsReported>().back().last, 5);
  ASSERT_EQ(distinct<TaskExited>().size(), 1U);
  EXPECT_EQ(distinct<TaskExited>()[0].code, 0);
  EXPECT_FALSE(machines_.is_running(AllocationId(0)));
}

TEST_F(SimulatedBackendTest, A3_TellsTheHighestUseOfMemoryOnceItHasLoaded) {
  Behaviour behaviour;
  behaviour.peak_mib = 70;
  backend_.carry_out(start(1, behaviour));
  run_for(seconds(5));
  EXPECT_TRUE(all<MemoryObserved>().empty());
  run_for(minutes(2));
  ASSERT_EQ(all<MemoryObserved>().size(), 1U);
  EXPECT_EQ(all<MemoryObserved>().front().peak, MiB(70));
}

TEST_F(SimulatedBackendTest, RepeatsReportsUntilTheyAreAcknowledged) {
  backend_.carry_out(start(0, {.steps = 5, .step = seconds(10)}));
  run_for(minutes(5));
  const std::size_t said = reports_.size();
  run_for(minutes(1));
  EXPECT_GT(reports_.size(), said);
  backend_.acknowledge(distinct<TaskExited>()[0].stamp);
  run_for(seconds(5));
  reports_.clear();
  run_for(minutes(5));
  EXPECT_TRUE(reports_.empty());
}

TEST_F(SimulatedBackendTest, AnOrderCarriedOutTwiceIsCarriedOutOnce) {
  const StartTask order = start(0, {.steps = 5, .step = seconds(10)});
  backend_.carry_out(order);
  backend_.carry_out(order);
  run_for(minutes(5));
  backend_.carry_out(order);  // long after its end
  run_for(minutes(5));
  EXPECT_EQ(distinct<TaskStarted>().size(), 1U);
  EXPECT_TRUE(machines_.broken_promises().empty());
}

TEST_F(SimulatedBackendTest, YieldsAtItsBoundaryAndResumesThere) {
  const Behaviour behaviour{.steps = 100, .step = seconds(10), .interval = minutes(2)};
  backend_.carry_out(start(0, behaviour));
  run_for(minutes(1));
  backend_.carry_out(AskYield{AllocationId(0), ReleaseMode::boundary, Time::never()});
  run_for(minutes(3));
  ASSERT_EQ(distinct<CheckpointDurable>().size(), 1U);
  EXPECT_EQ(distinct<CheckpointDurable>()[0].step, 12);
  ASSERT_EQ(distinct<YieldAcknowledged>().size(), 1U);
  EXPECT_EQ(distinct<TaskExited>()[0].code, 75);
  StartTask again = start(1, behaviour);
  again.restore_from = distinct<CheckpointDurable>()[0].path;
  backend_.carry_out(again);
  run_for(hours(1));
  EXPECT_EQ(backend_.records().at("job").executed_steps, 100) << "no step was run twice";
}

TEST_F(SimulatedBackendTest, AWithdrawnYieldLetsItGoOn) {
  backend_.carry_out(start(0, {.steps = 100, .step = seconds(10), .interval = minutes(2)}));
  run_for(minutes(1));
  backend_.carry_out(AskYield{AllocationId(0), ReleaseMode::boundary, Time::never()});
  run_for(seconds(10));
  backend_.carry_out(WithdrawYield{AllocationId(0)});
  run_for(minutes(10));
  EXPECT_TRUE(distinct<YieldAcknowledged>().empty());
  EXPECT_TRUE(machines_.is_running(AllocationId(0)));
}

TEST_F(SimulatedBackendTest, OneThatIgnoresEverythingIsKilled) {
  backend_.carry_out(start(0, {.fault = Fault::ignores_term}));
  run_for(minutes(1));
  backend_.carry_out(StopTask{AllocationId(0), timeline_.now() + seconds(30)});
  run_for(seconds(29));
  EXPECT_TRUE(machines_.is_running(AllocationId(0)));
  run_for(seconds(10));
  EXPECT_EQ(distinct<TaskExited>()[0].signal, 9);
}

TEST_F(SimulatedBackendTest, WhatWasNeverStartedCanEndAndThenNeverStarts) {
  backend_.carry_out(KillTask{AllocationId(0)});
  run_for(seconds(1));
  EXPECT_EQ(distinct<TaskExited>().size(), 1U);
  backend_.carry_out(start(0, {}));
  run_for(minutes(1));
  EXPECT_TRUE(distinct<TaskStarted>().empty());
}

TEST_F(SimulatedBackendTest, TasksOutliveADaemonAndTellTheNextOne) {
  backend_.carry_out(start(0, {.steps = 3, .step = seconds(10)}));
  run_for(seconds(25));
  backend_.crash_daemon();
  run_for(minutes(5));
  EXPECT_TRUE(distinct<TaskExited>().empty());
  listen();
  run_for(minutes(1));
  EXPECT_EQ(distinct<TaskExited>().size(), 1U);
}

TEST_F(SimulatedBackendTest, ALostNodeTakesItsTasksAndSaysNothing) {
  backend_.carry_out(start(0, {}));
  run_for(minutes(1));
  reports_.clear();
  backend_.lose_node("n0");
  run_for(minutes(5));
  EXPECT_TRUE(reports_.empty());
  EXPECT_FALSE(machines_.is_running(AllocationId(0)));
}

TEST_F(SimulatedBackendTest, AnUnreachableNodeIsHeardLater) {
  backend_.carry_out(start(0, {.steps = 3, .step = seconds(10)}));
  run_for(seconds(5));
  machines_.node("n0").reachable = false;
  run_for(seconds(1));
  reports_.clear();
  run_for(minutes(5));
  EXPECT_TRUE(reports_.empty());
  backend_.reach_node("n0");
  run_for(seconds(10));
  EXPECT_EQ(distinct<TaskExited>().size(), 1U);
}

TEST_F(SimulatedBackendTest, NoticesADeviceThatIsGivenAwayTwice) {
  backend_.carry_out(start(0, {}));
  backend_.carry_out(start(1, {}));
  run_for(minutes(1));
  EXPECT_FALSE(machines_.broken_promises().empty());
}

}  // namespace
}  // namespace neap::simulated
