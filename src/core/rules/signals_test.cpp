// Use, queue and latency of a service, and its sleep (SPEC D5, S13).
#include "core/rules/signals.h"

#include <gtest/gtest.h>

#include <string>

#include "core/model/pool_index.h"
#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

class SignalsTest : public ::testing::Test {
 protected:
  void serve(int least, int most, int ready) {
    s.configure();
    s.node("n0", "a", 8);
    ServiceSpec chat = Script::service("chat", ready, most);
    chat.slo_first_byte = seconds(1);
    ASSERT_TRUE(s.submit(chat));
    for (int i = 0; i < ready; ++i) bring_up(i);
    ASSERT_TRUE(s.event(ServiceScaled{"chat", least, most, "ann"}));
  }
  void bring_up(int number) {
    const std::string name = "chat." + std::to_string(number);
    s.started(name);
    s.healthy(name);
  }
  void tell(const ServiceMeasured& sample, Micros time) {
    for (Micros t{0}; t < time; t += seconds(10)) {
      ASSERT_TRUE(s.event(sample));
      s.pass(seconds(10));
    }
  }
  // Half of two replicas is in use, nobody waits, and all are quick.
  static ServiceMeasured quiet(std::int64_t in_use) {
    return {"chat", in_use, 0, 1, milliseconds(100)};
  }
  // That stay, not those on their way out.
  [[nodiscard]] int replicas() const {
    int staying = 0;
    for (const TaskId id : s.state.services[0].replicas) {
      staying += s.state.tasks.at(id).phase != Phase::stopping ? 1 : 0;
    }
    return staying;
  }

  Script s;
};

TEST_F(SignalsTest, AnyOfThemAddsOneD5) {
  const auto added_by = [&](const ServiceMeasured& sample) {
    s = Script();
    serve(1, 4, 2);
    tell(sample, minutes(3) - seconds(10));
    EXPECT_EQ(replicas(), 2);
    tell(sample, seconds(30));
    return replicas() - 2;
  };
  EXPECT_EQ(added_by(quiet(10)), 0);
  EXPECT_EQ(added_by(quiet(15)), 1);
  ServiceMeasured queues = quiet(10);
  queues.queued = 1;
  EXPECT_EQ(added_by(queues), 1);
  ServiceMeasured late = quiet(10);
  late.first_byte_p95 = seconds(1) + microseconds(1);
  EXPECT_EQ(added_by(late), 1);
  late.first_byte_p95 = seconds(1);
  EXPECT_EQ(added_by(late), 0);
}

TEST_F(SignalsTest, TheirThresholdsAreConfigurationD5) {
  s.spec.scale.queue_above = 5;
  s.spec.scale.first_byte_above = seconds(3);
  serve(1, 4, 2);
  ServiceMeasured sample = quiet(10);
  sample.queued = 10;  // five for each
  sample.first_byte_p95 = seconds(2);
  tell(sample, minutes(10));
  EXPECT_EQ(replicas(), 2);
  sample.queued = 11;
  tell(sample, minutes(4));
  EXPECT_EQ(replicas(), 3);
}

TEST_F(SignalsTest, OneGoesWhenAllAgreeD5) {
  serve(1, 4, 3);
  ServiceMeasured sample = quiet(2);
  sample.queued = 1;
  tell(sample, minutes(2));  // not for long enough to add one
  EXPECT_EQ(replicas(), 3);
  sample = quiet(2);
  sample.first_byte_p95 = milliseconds(501);  // with one fewer it might be too late
  tell(sample, minutes(10));
  EXPECT_EQ(replicas(), 3);
  sample.first_byte_p95 = milliseconds(500);
  tell(sample, minutes(5) + seconds(20));
  EXPECT_EQ(replicas(), 2);
}

// A whole time for each: what one fewer does is seen before the next one goes.
TEST_F(SignalsTest, OneAtATimeAfterItsCoolDownD5) {
  serve(1, 4, 4);
  tell(quiet(1), minutes(5) + seconds(10));
  EXPECT_EQ(replicas(), 3);
  tell(quiet(1), minutes(4));
  EXPECT_EQ(replicas(), 3);
  tell(quiet(1), minutes(1) + seconds(20));
  EXPECT_EQ(replicas(), 2);
}

TEST_F(SignalsTest, ASignalThatWasToldAndIsMissingChangesNothingS13) {
  serve(1, 4, 3);
  tell(quiet(2), minutes(1));
  ServiceMeasured no_queue = quiet(2);
  no_queue.queued.reset();
  tell(no_queue, minutes(20));
  EXPECT_EQ(replicas(), 3);
  ServiceMeasured no_latency = quiet(2);
  no_latency.first_byte_p95.reset();
  tell(no_latency, minutes(20));
  EXPECT_EQ(replicas(), 3);
  tell({"chat", std::nullopt}, minutes(20));
  EXPECT_EQ(replicas(), 3);
  // Nobody asks, so nobody is late: that is known.
  tell({"chat", 0, 0, 0}, minutes(6));
  EXPECT_EQ(replicas(), 2);
}

TEST_F(SignalsTest, AServiceThatTellsItsUseAloneFollowsItS13) {
  serve(1, 4, 2);
  tell({"chat", 2}, minutes(6));
  EXPECT_EQ(replicas(), 1);
}

// ---- sleep -----------------------------------------------------------------------------------

TEST_F(SignalsTest, SleepsWhenNobodyAskedForLongD5) {
  serve(0, 2, 1);
  tell({"chat", 0, 0, 0}, minutes(5) - seconds(10));
  EXPECT_EQ(replicas(), 1);
  tell({"chat", 0, 0, 0}, seconds(30));
  EXPECT_EQ(replicas(), 0);
}

TEST_F(SignalsTest, AFewRequestsKeepTheLastOneD5) {
  serve(0, 2, 1);
  for (int i = 0; i < 10; ++i) {  // short ones: never seen in use, but seen to end
    tell({"chat", 0, 0, 0}, minutes(4));
    tell({"chat", 0, 0, 1, milliseconds(50)}, seconds(10));
  }
  EXPECT_EQ(replicas(), 1);
}

TEST_F(SignalsTest, WakesWhenSomebodyAsksD5) {
  serve(0, 2, 1);
  tell({"chat", 0, 0, 0}, minutes(6));
  s.exited("chat.0", 0);
  EXPECT_EQ(replicas(), 0);
  tell({"chat", 0, 0, 0}, hours(1));
  EXPECT_EQ(replicas(), 0);
  ASSERT_TRUE(s.event(ServiceMeasured{"chat", 0, 0, 1}));  // refused, as nothing serves
  EXPECT_EQ(replicas(), 1);
  EXPECT_EQ(s.where("chat.1").substr(0, 8), "starting");
  // It does not fall asleep again before it has served for its time.
  tell({"chat", 0, 0, 0}, minutes(8));
  EXPECT_EQ(replicas(), 1);
  bring_up(1);
  tell({"chat", 0, 0, 0}, minutes(4));
  EXPECT_EQ(replicas(), 1);
  tell({"chat", 0, 0, 0}, minutes(2));
  EXPECT_EQ(replicas(), 0);
}

TEST_F(SignalsTest, UnknownLoadNeitherWakesNorPutsToSleepS13) {
  serve(0, 2, 1);
  tell({"chat", std::nullopt}, hours(1));
  EXPECT_EQ(replicas(), 1);
  tell({"chat", 0, 0, 0}, minutes(6));
  s.exited("chat.0", 0);
  tell({"chat", std::nullopt}, hours(1));
  EXPECT_EQ(replicas(), 0);
}

TEST_F(SignalsTest, APauseWakesNobodyG4) {
  serve(0, 2, 1);
  tell({"chat", 0, 0, 0}, minutes(6));
  s.exited("chat.0", 0);
  ASSERT_TRUE(s.event(PauseRequested{"ann", "incident"}));
  ASSERT_TRUE(s.event(ServiceMeasured{"chat", 1, 1, 0}));
  EXPECT_EQ(replicas(), 0);
  ASSERT_TRUE(s.event(ResumeRequested{"ann"}));
  EXPECT_EQ(replicas(), 1);
}

TEST_F(SignalsTest, SleepsAndWakesWhereReplicasFollowTheTideD5) {
  s.spec.scale.mode = ScaleMode::tidal;
  s.spec.scale.dwell = minutes(10);
  serve(0, 2, 1);
  tell({"chat", 0, 0, 1}, minutes(20));  // short requests, none in use at any sample
  EXPECT_EQ(replicas(), 1);
  tell({"chat", 0, 0, 0}, minutes(16));
  EXPECT_EQ(replicas(), 0);
  s.exited("chat.0", 0);
  ASSERT_TRUE(s.event(ServiceMeasured{"chat", 0, 0, 1}));
  EXPECT_EQ(replicas(), 1);
}

TEST_F(SignalsTest, OddNumbersAreRefusedG5) {
  serve(1, 2, 1);
  EXPECT_EQ(s.event(ServiceMeasured{"chat", 1, -1}).error().context, "queued");
  EXPECT_EQ(s.event(ServiceMeasured{"chat", 1, 1, -1}).error().context, "ended");
  EXPECT_EQ(s.event(ServiceMeasured{"chat", 1, 1, 1, Micros(-1)}).error().context,
            "first_byte_p95");
}

}  // namespace
}  // namespace neap
