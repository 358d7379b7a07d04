// A daemon crash at every write of the journal, at every point in the life of a write: whatever
// was happening, no task stops, nothing is lost, and the pool ends as it would have without.
#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace neap::sim {
namespace {

struct End {
  std::map<std::string, std::string> phases;  // of the tasks that people submitted
  std::int64_t executed = 0;                  // steps of all tasks
  std::uint64_t writes = 0, crashes = 0;
  Time at;
};

// A burst takes devices from training and gives them back; a task fails, one is cancelled.
End play(const CrashPlan& crashes) {
  Site::Options options;
  options.crashes = crashes;
  Stage stage(pool_with(1, 1), nodes_of(4, 2), options);
  Job failing{.name = "failing", .length = minutes(20)};
  failing.behaviour.step = minutes(2);
  failing.behaviour.fault = simulated::Fault::crashes;
  failing.behaviour.fault_at = 8;
  failing.behaviour.fault_times = 1;
  stage->submit(task_of(failing));
  for (const char* name : {"job-a", "job-b", "job-c"}) {
    Job job{.name = name, .length = minutes(50)};
    job.behaviour.step = minutes(2);
    TaskSpec task = task_of(job);
    task.contract.restore = seconds(20);
    stage->submit(task);
  }
  ServiceSpec chat = service_of("chat", 1, 3);
  stage->timeline().at(Time(0) + minutes(35), [&] {
    stage->submit(chat, [](Time t) {
      return std::optional<std::int64_t>(t < Time(0) + minutes(60) ? 25 : 1);
    });
  });
  stage->timeline().at(Time(0) + minutes(50), [&] {
    stage->ask(TaskCancelRequested{"job-c", "its owner"});
  });
  stage->timeline().at(Time(0) + minutes(100), [&] {
    stage->ask(ServiceRemoveRequested{"chat", "its owner"});
  });
  const std::array names{"failing", "job-a", "job-b", "job-c"};
  const bool ended = stage.wait_for(
      [&] {
        return stage->now() > Time(0) + minutes(110) && stage.holding("") == 0 &&
               std::all_of(names.begin(), names.end(),
                           [&](const char* name) { return has_ended(stage.phase(name)); });
      },
      hours(8));
  EXPECT_TRUE(ended);
  End end;
  end.writes = stage->daemon().writes();
  end.crashes = stage->daemon().crashes();
  end.at = stage->now();
  for (const char* name : names) {
    end.phases[name] = std::string(name_of(stage.phase(name)));
    if (std::string_view(name) != "job-c") end.executed += stage.executed(name);
  }
  EXPECT_EQ(stage.occupied_milli(), 0);
  return end;
}

TEST(Crash, G3_AtEveryWriteAndEveryPointOfIt) {
  const End undisturbed = play({});
  ASSERT_GT(undisturbed.writes, 60U);
  ASSERT_EQ(undisturbed.crashes, 0U);
  std::uint64_t crashed = 0;
  for (std::uint8_t point = 0; point < crash_points; ++point) {
    for (std::uint64_t write = 0; write < undisturbed.writes; ++write) {
      CrashPlan plan;
      plan.write = write;
      plan.point = static_cast<CrashPoint>(point);
      const End end = play(plan);
      crashed += end.crashes;
      EXPECT_EQ(end.phases, undisturbed.phases) << "write " << write << ", point " << int{point};
      // The tasks went on: the same steps, none of them twice because of the crash.
      EXPECT_LE(end.executed, undisturbed.executed + 8)
          << "write " << write << ", point " << int{point};
      if (::testing::Test::HasFailure()) return;
    }
  }
  // Not every write carries actions to crash between; all other points are met each time.
  EXPECT_GE(crashed, undisturbed.writes * (crash_points - 1));
}

// ---- a move in the middle --------------------------------------------------------------------

struct Moved {
  std::map<std::string, std::string> phases;
  std::int64_t executed = 0;
  std::uint64_t first = 0, writes = 0, crashes = 0, moves = 0;  // writes: from first on
};

// Two devices, each with a task on 30 % of it: one moves to the other device, so that a task that
// needs a whole one can start. Crashes count from the write with which that task came.
Moved play_a_move(CrashPlan crashes, std::uint64_t first) {
  if (crashes.write) *crashes.write += first;
  Site::Options options;
  options.crashes = crashes;
  PoolSpec pool = pool_with(0, 0);
  pool.preempt.protect_min = minutes(5);
  pool.reserve.after = minutes(1);
  Stage stage(pool, nodes_of(2, 2), options);
  const auto small = [&](const char* name, Micros length, MilliGpu share) {
    Job job{.name = name, .length = length};
    job.behaviour.step = minutes(2);
    job.behaviour.load = job.behaviour.restore = seconds(10);
    TaskSpec task = share_of(task_of(job), MiB(8 * 1024), share);
    stage->submit(task);
    EXPECT_TRUE(stage.wait_for([&] { return stage->task(name) != nullptr && stage.runs(name); }));
  };
  small("a", hours(3), MilliGpu(300));
  small("filler", minutes(20), MilliGpu(700));
  small("b", hours(3), MilliGpu(300));
  stage.run_for(minutes(40));
  Moved end;
  end.first = stage->daemon().writes();
  stage->submit(task_of({.name = "large", .length = minutes(20)}));
  const std::array names{"a", "b", "filler", "large"};
  const auto ended = [&](const char* name) {
    return stage->task(name) != nullptr && has_ended(stage.phase(name));
  };
  EXPECT_TRUE(stage.wait_for([&] { return ended("large"); }, hours(3)));
  end.writes = stage->daemon().writes() - end.first;
  end.crashes = stage->daemon().crashes();
  end.moves = stage->invariants().moved();
  EXPECT_TRUE(
      stage.wait_for([&] { return std::all_of(names.begin(), names.end(), ended); }, hours(8)));
  for (const char* name : names) {
    end.phases[name] = std::string(name_of(stage.phase(name)));
    end.executed += stage.executed(name);
  }
  return end;
}

TEST(Crash, C5_G3_AMoveInTheMiddleGoesOnAfterARestart) {
  const Moved undisturbed = play_a_move({}, 0);
  ASSERT_EQ(undisturbed.moves, 1U);
  ASSERT_EQ(undisturbed.phases.at("large"), "finished");
  ASSERT_GT(undisturbed.writes, 10U);
  std::uint64_t crashed = 0;
  for (std::uint8_t point = 0; point < crash_points; ++point) {
    for (std::uint64_t write = 0; write < undisturbed.writes; ++write) {
      CrashPlan plan;
      plan.write = write;
      plan.point = static_cast<CrashPoint>(point);
      const Moved end = play_a_move(plan, undisturbed.first);
      crashed += end.crashes;
      EXPECT_EQ(end.phases, undisturbed.phases) << "write " << write << ", point " << int{point};
      EXPECT_LE(end.executed, undisturbed.executed + 8)
          << "write " << write << ", point " << int{point};
      // What was planned and durable is not planned again; what was not, is.
      EXPECT_GE(end.moves, 1U) << "write " << write << ", point " << int{point};
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(crashed, undisturbed.writes * (crash_points - 1));
}

}  // namespace
}  // namespace neap::sim
