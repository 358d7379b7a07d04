#include "core/sequencer.h"

#include <gtest/gtest.h>

namespace neap {
namespace {

Event step_of(std::uint64_t source, std::uint32_t epoch, std::uint64_t sequence) {
  return StepsReported{.stamp = {AllocationId(source), epoch, sequence},
                       .last = static_cast<std::int64_t>(sequence)};
}

// What came out, as "source.epoch.sequence" words; "-" for events without a stamp.
std::string out_of(Sequencer& sequencer, const std::vector<Event>& events) {
  std::string words;
  for (const Event& event : events) {
    std::vector<Event> ready;
    sequencer.admit(event, ready);
    for (const Event& e : ready) {
      const ReportStamp* stamp = stamp_of(e);
      if (!words.empty()) words += ' ';
      words += stamp == nullptr
                   ? "-"
                   : std::to_string(stamp->source.value) + '.' + std::to_string(stamp->epoch) +
                         '.' + std::to_string(stamp->sequence);
    }
  }
  return words;
}

TEST(Sequencer, PassesWhatIsNext) {
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(0, 0, 1), step_of(1, 0, 1), step_of(0, 0, 2), TimerFired{}}),
            "0.0.1 1.0.1 0.0.2 -");
}

TEST(Sequencer, DropsDuplicates) {
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(0, 0, 1), step_of(0, 0, 1), step_of(0, 0, 2), step_of(0, 0, 1)}),
            "0.0.1 0.0.2");
}

TEST(Sequencer, HoldsEarlyOnesUntilTheGapCloses) {
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(0, 0, 3), step_of(0, 0, 2), step_of(0, 0, 3)}), "");
  EXPECT_EQ(out_of(s, {step_of(0, 0, 1)}), "0.0.1 0.0.2 0.0.3");
}

TEST(Sequencer, ANewEpochStartsAtOneAndEndsTheOldOne) {
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(0, 0, 1), step_of(0, 0, 3), step_of(0, 1, 2), step_of(0, 0, 2),
                       step_of(0, 1, 1), step_of(0, 1, 3)}),
            "0.0.1 0.1.1 0.1.2 0.1.3");
}

TEST(Sequencer, DropsWhatComesAfterTheEnd) {
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(2, 0, 1)}), "2.0.1");
  s.forget(AllocationId(2));
  EXPECT_EQ(out_of(s, {step_of(2, 0, 2), step_of(2, 1, 1)}), "");
  // Sources below it that had not reported yet are not taken for ended.
  EXPECT_EQ(out_of(s, {step_of(1, 0, 1), step_of(0, 0, 1), step_of(3, 0, 1)}), "1.0.1 0.0.1 3.0.1");
  s.forget(AllocationId(0));
  EXPECT_EQ(out_of(s, {step_of(0, 0, 2), step_of(1, 0, 2)}), "1.0.2");
}

TEST(Sequencer, SaysWhatIsOldSoThatItsSenderIsTold) {
  Sequencer s;
  EXPECT_FALSE(s.is_old({AllocationId(0), 0, 1}));
  EXPECT_EQ(out_of(s, {step_of(0, 0, 1), step_of(0, 0, 3)}), "0.0.1");
  EXPECT_TRUE(s.is_old({AllocationId(0), 0, 1}));
  EXPECT_FALSE(s.is_old({AllocationId(0), 0, 2}));
  EXPECT_FALSE(s.is_old({AllocationId(0), 0, 3})) << "it waits: not applied, not durable";
  s.forget(AllocationId(0));
  EXPECT_TRUE(s.is_old({AllocationId(0), 0, 3}));
}

TEST(Sequencer, BoundsWhatWaits) {
  Sequencer s;
  const std::uint64_t last = Sequencer::max_waiting + 10;
  std::vector<Event> early;
  for (std::uint64_t n = 2; n <= last; ++n) early.push_back(step_of(0, 0, n));
  EXPECT_EQ(out_of(s, early), "");
  std::vector<Event> ready;
  s.admit(step_of(0, 0, 1), ready);
  EXPECT_EQ(ready.size(), Sequencer::max_waiting + 1);
  for (const Event& again : early) s.admit(again, ready);  // its sender had no acknowledgement
  EXPECT_EQ(ready.size(), last);
}

TEST(Sequencer, StartsOverFromWhatTheStateHasApplied) {
  PoolState state;
  state.next_allocation = 3;
  const auto add = [&](Phase phase, std::uint64_t allocation) {
    TaskState& task = state.tasks.add();
    task.phase = phase;
    task.allocation = AllocationId(allocation);
    task.report_epoch = 1;
    task.report_sequence = 4;
  };
  add(Phase::finished, 0);
  add(Phase::running, 1);
  add(Phase::waiting, 2);  // it was preempted: allocation 2 has ended
  Sequencer s;
  EXPECT_EQ(out_of(s, {step_of(1, 1, 1)}), "1.1.1");
  s.restore(state);
  EXPECT_EQ(out_of(s, {step_of(0, 1, 5), step_of(1, 1, 4), step_of(1, 0, 5), step_of(2, 1, 5),
                       step_of(1, 1, 5), step_of(3, 0, 1)}),
            "1.1.5 3.0.1");
}

}  // namespace
}  // namespace neap
