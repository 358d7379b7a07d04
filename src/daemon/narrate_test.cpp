#include "daemon/narrate.h"

#include <gtest/gtest.h>

#include "core/testing/script.h"

namespace neap::daemon {
namespace {

using testing::Script;

struct Told {
  std::uint32_t owner = 0;
  bool all = false;
};

Told told(const Script& s, Time at, const Event& event) {
  const Narration words = narrate(s.state, at, event, TaskId::none());
  return {words.owner_uid, words.about_pool};
}

TaskSpec task_of(std::uint32_t uid, const std::string& name) {
  TaskSpec spec = Script::training(name);
  spec.owner = {uid, uid, "u" + std::to_string(uid)};
  return spec;
}

// What others did with a name is not for whoever uses it next, nor for everybody (F5, G6).
TEST(Narrate, EventsOfATaskBelongToWhoOwnedItThen) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  const TaskSubmitted first{task_of(1000, "job")};
  const TaskCancelRequested cancel{"job", "u1000"};
  ASSERT_TRUE(s.event(first));
  const Time submitted = s.now;
  s.exited("job", 0);
  s.pass(seconds(1));
  ASSERT_TRUE(s.submit(task_of(1000, "waits")));
  const Time waits = s.now;
  s.pass(seconds(1));
  ASSERT_TRUE(s.submit(task_of(2000, "job")));
  EXPECT_EQ(told(s, submitted, first).owner, 1000U);
  EXPECT_EQ(told(s, submitted, cancel).owner, 1000U);
  EXPECT_EQ(told(s, s.now, cancel).owner, 2000U);
  // Nobody bore the name at that time: it is for administrators alone.
  EXPECT_EQ(told(s, waits, cancel).owner, 0U);
  for (const Time at : {submitted, waits, s.now}) EXPECT_FALSE(told(s, at, cancel).all);
  // One that was cancelled while it waited is no longer live when its own event is told.
  ASSERT_TRUE(s.submit(task_of(3000, "queued")));
  ASSERT_TRUE(s.event(TaskCancelRequested{"queued", "u3000"}));
  EXPECT_EQ(told(s, s.now, TaskCancelRequested{"queued", "u3000"}).owner, 3000U);
}

TEST(Narrate, EventsOfAServiceBelongToItsOwner) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  ServiceSpec chat = Script::service("chat", 0, 1);
  chat.owner = {1000, 1000, "u1000"};
  ASSERT_TRUE(s.submit(chat));
  ASSERT_TRUE(s.event(ServiceRemoveRequested{"chat", "u1000"}));
  for (const Event& event :
       {Event(ServiceRemoveRequested{"chat", "u1000"}), Event(ServiceScaled{"chat", 1, 1, "u1000"}),
        Event(ServiceMeasured{"chat", 1}), Event(ServiceSubmitted{chat})}) {
    EXPECT_EQ(told(s, s.now, event).owner, 1000U);
    EXPECT_FALSE(told(s, s.now, event).all);
  }
  ServiceSpec again = Script::service("chat", 0, 1);
  again.owner = {2000, 2000, "u2000"};
  ASSERT_TRUE(s.submit(again));
  EXPECT_EQ(told(s, s.now, ServiceSubmitted{chat}).owner, 1000U);
  EXPECT_EQ(told(s, s.now, ServiceMeasured{"chat", 1}).owner, 0U);  // whose it was is not known
  EXPECT_FALSE(told(s, s.now, ServiceMeasured{"chat", 1}).all);
}

TEST(Narrate, WhatIsNobodysOwnIsForEverybody) {
  Script s;
  s.configure();
  s.node("n0", "d0", 1);
  EXPECT_TRUE(told(s, s.now, PoolConfigured{s.spec}).all);
  EXPECT_TRUE(told(s, s.now, NodeUnreachable{"n0"}).all);
  EXPECT_TRUE(told(s, s.now, PauseRequested{"root", "why"}).all);
}

}  // namespace
}  // namespace neap::daemon
