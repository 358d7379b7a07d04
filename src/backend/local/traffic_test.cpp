#include "backend/local/traffic.h"

#include <gtest/gtest.h>

namespace neap::local {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// What tc was told, with answers by the front of the command.
struct Tc {
  std::vector<std::string> told;
  std::vector<std::pair<std::string, Result<std::string>>> answers;

  TrafficShaper::Run run() {
    return [this](const Words& words) -> Result<std::string> {
      told.push_back(joined(words));
      for (const auto& [front, answer] : answers) {
        if (told.back().starts_with(front)) return answer;
      }
      return std::string();
    };
  }
};

TEST(Traffic, TheQueueIsMadeWhereTheKernelsOwnIs) {  // B5
  Tc tc;
  tc.answers = {{"qdisc show dev eth0", std::string("qdisc mq 0: root \n"
                                                    "qdisc fq_codel 0: parent :1 limit 10240p\n")},
                {"qdisc show dev lo", std::string("qdisc noqueue 0: root refcnt 2 \n")}};
  ASSERT_TRUE(TrafficShaper({"eth0", "lo"}, tc.run()).prepare());
  EXPECT_EQ(tc.told,
            (Words{"qdisc show dev eth0", "qdisc add dev eth0 root handle 6e70: htb default 0",
                   "qdisc show dev lo", "qdisc add dev lo root handle 6e70: htb default 0"}));
}

TEST(Traffic, ItsOwnQueueStaysAndThatOfOthersIsLeftAlone) {
  Tc tc;
  tc.answers = {{"qdisc show dev ours", std::string("qdisc htb 6e70: root refcnt 2 r2q 10\n")},
                {"qdisc show dev theirs", std::string("qdisc htb 1: root refcnt 2 r2q 10\n")}};
  EXPECT_TRUE(TrafficShaper({"ours"}, tc.run()).prepare());
  const auto refused = TrafficShaper({"theirs"}, tc.run()).prepare();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_EQ(refused.error().context, "theirs");
  EXPECT_EQ(tc.told.size(), 2U);  // looked, and changed nothing
  EXPECT_FALSE(TrafficShaper({}, tc.run()).prepare());
}

TEST(Traffic, AClassIsOneThatNobodyHas) {
  Tc tc;
  tc.answers = {{"class show dev a", std::string("class htb 6e70:10 root prio 0 rate 80Mbit\n"
                                                 "class htb 6e70:12 root prio 0 rate 80Mbit\n")},
                {"class show dev b", std::string("class htb 6e70:11 root prio 0 rate 80Mbit\n")}};
  const TrafficShaper shaper({"a", "b"}, tc.run());
  EXPECT_EQ(shaper.claim(1'000'000).value(), 0x13U);
  ASSERT_EQ(tc.told.size(), 4U);
  EXPECT_EQ(tc.told[2],
            "class add dev a parent 6e70: classid 6e70:13 htb rate 1000000bps ceil 1000000bps "
            "quantum 65536");
  ASSERT_TRUE(shaper.set(0x13, 2'000'000));
  EXPECT_TRUE(tc.told.back().starts_with("class replace dev b")) << tc.told.back();
  shaper.remove(0x13);
  EXPECT_EQ(tc.told.back(), "class del dev b classid 6e70:13");
}

TEST(Traffic, AnotherPoolThatWasQuickerKeepsItsClass) {
  Tc tc;
  tc.answers = {{"class add dev a parent 6e70: classid 6e70:10",
                 fail(ErrorCode::unavailable, "tc: RTNETLINK answers: File exists")}};
  EXPECT_EQ(TrafficShaper({"a"}, tc.run()).claim(1000).value(), 0x11U);
}

TEST(Traffic, WhatTcSaysIsPassedOn) {
  Tc tc;
  tc.answers = {{"qdisc", fail(ErrorCode::unavailable, "tc: Cannot find device \"nope\"")}};
  const auto refused = TrafficShaper({"nope"}, tc.run()).prepare();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "tc: Cannot find device \"nope\"");
}

}  // namespace
}  // namespace neap::local
