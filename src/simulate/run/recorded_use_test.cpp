// F1: the pool's own journal as the use of its devices.
#include "simulate/run/recorded_use.h"

#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/testing/script.h"

namespace neap::whatif {
namespace {

// A pool driven by a script, whose records are noted as a journal would hold them.
class Recorded : public ::testing::Test {
 protected:
  void happen(const Event& event) {
    ASSERT_TRUE(script_.event(event).has_value());
    recording_.note(script_.now, event);
    for (const Decision& decision : script_.last.decisions) {
      recording_.note(script_.now, decision);
    }
  }
  [[nodiscard]] ReportStamp stamp(const char* task) const {
    const TaskState& t = script_.task(task);
    return {t.allocation, 1, t.report_epoch == 0 ? 1 : t.report_sequence + 1};
  }
  void wait(Micros span) { script_.now = script_.now + span; }

  neap::testing::Script script_;
  UseRecording recording_{minutes(30)};
};

TEST_F(Recorded, F1_WhatTrainingAndInferenceHeldIsToldApart) {
  happen(PoolConfigured{script_.spec});
  NodeJoined node{{"n0", "rack", {}}};
  for (int i = 0; i < 4; ++i) {
    node.spec.devices.push_back({"g" + std::to_string(i), "A100-80G", MiB(81'920), false});
  }
  happen(node);
  happen(ServiceSubmitted{neap::testing::Script::service("chat", 1, 1)});
  wait(minutes(30));
  happen(TaskSubmitted{neap::testing::Script::training("job", 2)});
  happen(TaskStarted{stamp("job")});
  wait(minutes(45));
  TaskExited ended;
  ended.stamp = stamp("job");
  happen(ended);
  wait(minutes(45));
  happen(NodeLost{"n0"});
  wait(minutes(60));
  happen(TimerFired{});
  const auto use = recording_.finish();
  ASSERT_TRUE(use.has_value());
  using Milli = std::vector<std::int64_t>;
  EXPECT_EQ(use->inference.milli, (Milli{1'000, 1'000, 1'000, 1'000, 0, 0}));
  EXPECT_EQ(use->training.milli, (Milli{0, 2'000, 1'000, 0, 0, 0}));
}

TEST(RecordedUse, F1_AFileThatIsNoJournalIsNamed) {
  const auto use = read_use_of_journal("/nowhere/journal.db", minutes(10));
  ASSERT_FALSE(use.has_value());
  EXPECT_NE(to_string(use.error()).find("/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace neap::whatif
