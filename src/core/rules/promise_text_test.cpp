// F6, D6: everybody is told by when a task starts at the latest, or why that is not promised.
#include "core/rules/promise_text.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "core/testing/script.h"

namespace neap::promise_text_test {
namespace {

using testing::Script;

Script pool(int lane) {
  Script s;
  s.spec.fairness.lane = lane;
  s.configure();
  s.node("n0", "d0", 2);
  s.node("n1", "d1", 2);
  for (const char* name : {"a", "b"}) {
    TaskSpec talk = Script::training(name, 2);
    talk.tier = "interactive";
    EXPECT_TRUE(s.submit(talk));
  }
  EXPECT_TRUE(s.submit(Script::training("guest", 2)));
  return s;
}

std::string told(const Script& s, const char* name) { return promise_text(s.state, s.task(name)); }

TEST(PromiseText, F6_WithoutALaneItIsSaidThatNothingIsPromised) {
  Script s = pool(0);
  EXPECT_EQ(told(s, "guest"),
            "no start is promised: the pool keeps no lane for forced starts (fairness.lane)");
}

TEST(PromiseText, F6_TheLatestStartAndWhatLeadsToIt) {
  Script s = pool(2);
  ASSERT_TRUE(s.submit(Script::training("first")));
  ASSERT_TRUE(s.submit(Script::training("second")));
  EXPECT_EQ(told(s, "first"),
            "starts within 4 h 14 min at the latest: in 4 h 0 min it goes before all others");
  EXPECT_NE(told(s, "second").find("but for up to 1 that were promised a start before"),
            std::string::npos);
  s.work(hours(4) + minutes(1));
  EXPECT_EQ(told(s, "first"), "starts within 13 min at the latest: it goes before all others");
}

TEST(PromiseText, F6_WhyNoStartIsPromised) {
  Script s = pool(2);
  TaskSpec tied = Script::training("tied");
  tied.windows = {{hours(1), hours(2)}};
  ASSERT_TRUE(s.submit(tied));
  ASSERT_TRUE(s.submit(Script::training("large", 3)));
  EXPECT_NE(told(s, "tied").find("it may not be preempted; in 4 h 0 min"), std::string::npos);
  EXPECT_NE(told(s, "large").find("does not fit the lane of forced starts (2 devices)"),
            std::string::npos);
}

// Asked for are three devices, whole nodes make it four; and of what is lost the lane is the
// smaller.
TEST(PromiseText, F6_TheLaneIsAsLargeAsItIs) {
  Script s;
  s.spec.fairness.lane = 3;
  s.configure();
  s.node("n0", "d0", 2);
  s.node("n1", "d1", 4);
  ASSERT_TRUE(s.submit(Script::training("guest", 6)));
  ASSERT_TRUE(s.submit(Script::training("large", 6)));
  EXPECT_NE(told(s, "large").find("(" + std::to_string(s.state.index->lane.size()) + " devices)"),
            std::string::npos)
      << told(s, "large");
  EXPECT_NE(s.state.index->lane.size(), 3U);
}

TEST(PromiseText, F8_BeforeTheLaneBeginsThatIsSaid) {
  Script s = pool(2);
  ASSERT_TRUE(s.submit(Script::training("job")));
  EXPECT_EQ(told(s, "job").find("no start is promised"), std::string::npos);
  for (const AdoptionStage stage : {AdoptionStage::memory, AdoptionStage::physical}) {
    ASSERT_TRUE(s.event(AdoptionChangeRequested{stage, "ann", "back", false}));
    s.pass(minutes(1));
    EXPECT_EQ(told(s, "job"), "no start is promised in stage " + std::string(name_of(stage)) +
                                  " of adoption: the lane of forced starts (fairness.lane) begins "
                                  "with stage time");
  }
}

TEST(PromiseText, D6_ADeadlineThatIsNotAcceptedIsExplained) {
  Script s = pool(0);
  ASSERT_TRUE(s.event(WaitExpected{"train_normal", minutes(90)}));
  TaskSpec late = Script::training("late");
  late.work = hours(2);
  late.deadline = s.now + hours(3);
  ASSERT_TRUE(s.submit(late));
  EXPECT_EQ(deadline_text(s.state, s.task("late")),
            "the deadline was not accepted: its work and a restore, after a wait of 1 h 30 min as "
            "is expected now, end after it");
  TaskSpec open = Script::training("open");
  open.deadline = s.now + hours(3);
  ASSERT_TRUE(s.submit(open));
  EXPECT_NE(deadline_text(s.state, s.task("open")).find("is not declared (work)"),
            std::string::npos);
}

}  // namespace
}  // namespace neap::promise_text_test
