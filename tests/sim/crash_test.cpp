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

}  // namespace
}  // namespace neap::sim
