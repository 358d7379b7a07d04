// D12: what was seen of the checkpoint contract, and that a snapshot loses nothing of it.
#include "ledger/checkpoints.h"

#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/testing/script.h"

namespace neap::ledger {
namespace {

class Contract : public ::testing::Test {
 protected:
  void SetUp() override {
    script_.configure();
    script_.node("n0", "rack", 1);
    TaskSpec task = neap::testing::Script::training("job");
    task.contract.recovery = seconds(30);
    ASSERT_TRUE(script_.submit(task));
    note_decisions();
    report(TaskStarted{stamp()});
  }

  [[nodiscard]] ReportStamp stamp() const {
    const TaskState& job = script_.task("job");
    return {job.allocation, 1, job.report_epoch == 0 ? 1 : job.report_sequence + 1};
  }
  void note_decisions() {
    for (const Decision& decision : script_.last.decisions) book_.note(script_.state, decision);
  }
  void report(const Event& event) {
    const TaskId job = script_.task("job").id;
    ASSERT_TRUE(script_.event(event));
    book_.note(script_.state, script_.now, event, job);
    note_decisions();
  }
  void save(std::int64_t step) {
    CheckpointDurable saved;
    saved.stamp = stamp();
    saved.step = step;
    saved.captured = script_.now;
    saved.save = seconds(3);
    saved.stall = seconds(1);
    report(saved);
  }
  void work(Micros span) {
    for (const Time end = script_.now + span; script_.now < end;) {
      const Time next = std::min(end, next_timer(script_.state));
      script_.now = std::max(script_.now, next);
      if (script_.now < end) report(TimerFired{});
    }
  }
  [[nodiscard]] const CheckpointsSeen& seen() const { return *book_.of(script_.task("job").id); }

  neap::testing::Script script_;
  CheckpointBook book_;
};

TEST_F(Contract, D12_IntervalsSavesAndStallsAreMeasured) {
  for (const int length : {8, 9, 10}) {
    work(minutes(length));
    save(length);
  }
  EXPECT_EQ(seen().checkpoints, 3);
  const Spread intervals = spread_of(seen().intervals);
  EXPECT_EQ(intervals.p50, minutes(9).value);
  EXPECT_EQ(intervals.most, minutes(10).value);
  EXPECT_EQ(spread_of(seen().saves).p95, seconds(3).value);
  EXPECT_EQ(spread_of(seen().stalls).p95, seconds(1).value);
  EXPECT_TRUE(seen().restores.empty()) << "the first start restores nothing";
  EXPECT_EQ(seen().asked, 0);
}

TEST_F(Contract, D12_EachRestoreIsHeldAgainstItsObjective) {
  save(1);
  for (const int length : {20, 50}) {
    TaskExited yielded;
    yielded.stamp = stamp();
    yielded.code = 75;
    work(minutes(1));
    save(length);
    yielded.stamp = stamp();
    report(yielded);
    work(minutes(5));  // its pause, if it has one
    report(TaskStarted{stamp()});
    const Time placed = script_.task("job").placed_at;
    script_.now = placed + minutes(6) + seconds(length);
    StepsReported steps;
    steps.stamp = stamp();
    steps.last = length + 1;
    steps.count = 1;
    steps.busy = minutes(6);
    report(steps);
  }
  EXPECT_EQ(seen().restarts, 2);
  ASSERT_EQ(seen().restores.size(), 2U);
  EXPECT_EQ(seen().restores[0], seconds(20));
  EXPECT_EQ(seen().restores[1], seconds(50));
  EXPECT_EQ(seen().late_restores, 1);
}

TEST_F(Contract, D12_OverdueOnesThatWereAskedForAreCountedAndASnapshotKeepsAll) {
  work(minutes(25));
  EXPECT_GE(seen().asked, 2);
  Encoder out;
  book_.encode(out);
  const std::string bytes = out.take();
  CheckpointBook again;
  Decoder in(bytes);
  again.decode(in);
  EXPECT_TRUE(in.at_end() && !in.failed());
  Encoder once_more;
  again.encode(once_more);
  EXPECT_EQ(once_more.take(), bytes);
}

}  // namespace
}  // namespace neap::ledger
