// Gangs over nodes: which parts of the machine room they are put in (D7).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/testing/pool_builder.h"

namespace neap::gang_test {
namespace {

using testing::demand_of;
using testing::pool_of;

// The nodes in order, with how many devices of each: "a1=4 a2=2"; or the code of what is short.
std::string parts(const PoolState& state, std::string_view demand) {
  const Placement placement = place(state, demand_of(state, demand));
  if (placement.slots.empty()) return std::string(name_of(placement.why));
  std::vector<NodePart> nodes = parts_of(state, placement.slots);
  std::sort(nodes.begin(), nodes.end(),
            [](const NodePart& a, const NodePart& b) { return a.node < b.node; });
  std::string text;
  for (const NodePart& part : nodes) {
    text +=
        (text.empty() ? "" : " ") + state.node(part.node).name + "=" + std::to_string(part.devices);
  }
  return text;
}

struct Line {
  const char* name;
  const char* domain;
  const char* rack;
  int busy = 0;  // of four devices, from the first
};

PoolState room(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& l : lines) {
    text += std::string("node ") + l.name + " " + l.domain + " 4 A100 1000 rack=" + l.rack + "\n";
  }
  for (const Line& l : lines) {
    if (l.busy == 0) continue;
    text += std::string("task on-") + l.name + " normal on=" + l.name + ":0-" +
            std::to_string(l.busy - 1) + "\n";
  }
  return pool_of(text);
}

TEST(Gang, D7_TheRackWithTheFewestWholeNodesThatAreEnough) {
  const PoolState state = room({{"a1", "d", "a"},
                                {"a2", "d", "a"},
                                {"a3", "d", "a"},
                                {"b1", "d", "b"},
                                {"b2", "d", "b"},
                                {"c1", "e", "c"},
                                {"c2", "e", "c"}});
  EXPECT_EQ(parts(state, "normal count=8"), "b1=4 b2=4");  // c is as good, and comes later
  EXPECT_EQ(parts(state, "normal count=12"), "a1=4 a2=4 a3=4");
  EXPECT_EQ(parts(state, "normal count=9"), "a1=4 a2=4 a3=1");
}

TEST(Gang, D7_ThenOneFaultDomainThenAnywhereInFewRacks) {
  const PoolState state = room(
      {{"a1", "d", "a"}, {"b1", "e", "b"}, {"b2", "e", "b"}, {"c1", "e", "c"}, {"f1", "f", "f"}});
  EXPECT_EQ(parts(state, "normal count=12"), "b1=4 b2=4 c1=4");
  EXPECT_EQ(parts(state, "normal count=16"), "a1=4 b1=4 b2=4 c1=4");
  EXPECT_EQ(parts(state, "normal count=12 within=domain"), "b1=4 b2=4 c1=4");
  EXPECT_EQ(parts(state, "normal count=16 within=domain"), "cell");
  EXPECT_EQ(parts(state, "normal count=12 within=rack"), "cell");
}

TEST(Gang, D7_TheRestGoesNearAndWhereItFitsBest) {
  const PoolState state =
      room({{"a1", "d", "a"}, {"a2", "d", "a", 1}, {"a3", "d", "a", 2}, {"b1", "d", "b", 3}});
  EXPECT_EQ(parts(state, "normal count=5"), "a1=4 a3=1");
  EXPECT_EQ(parts(state, "normal count=7"), "a1=4 a2=3");
}

TEST(Gang, D7_WhereNoNodesAreWholeItWaitsForThem) {
  const PoolState state =
      room({{"a1", "d", "a", 1}, {"a2", "d", "a", 2}, {"a3", "d", "a", 3}, {"b1", "d", "b", 1}});
  EXPECT_EQ(parts(state, "normal count=6"), "fragmented");
  EXPECT_EQ(parts(state, "normal count=12"), "whole_devices");
}

TEST(Gang, D7_WhereThereCouldNeverBeEqualPartsFewNodesServe) {
  const PoolState state = pool_of(
      "node a1 d 3 A100 1000 rack=a\n"
      "node a2 d 2 A100 1000 rack=a\n"
      "node a3 d 1 A100 1000 rack=a\n"
      "node b1 d 2 A100 1000 rack=b\n"
      "node b2 d 2 A100 1000 rack=b\n");
  EXPECT_EQ(parts(state, "normal count=6"), "a1=3 a2=2 a3=1");
  EXPECT_EQ(parts(state, "normal count=4"), "a1=3 a3=1") << "equal parts and the rest";
  EXPECT_EQ(parts(state, "normal count=10"), "a1=3 a2=2 a3=1 b1=2 b2=2");
  EXPECT_EQ(parts(state, "normal count=11"), "whole_devices");
}

TEST(Gang, D7_WholeNodesElsewhereAreBetterThanPartsInOneRack) {
  const PoolState state = room({{"a1", "d", "a", 1},
                                {"a2", "d", "a", 1},
                                {"a3", "d", "a", 1},
                                {"b1", "d", "b"},
                                {"c1", "e", "c"}});
  EXPECT_EQ(parts(state, "normal count=8"), "b1=4 c1=4");
}

TEST(Gang, D7_EachPartHasItsShareOfTheHost) {
  const PoolState state = pool_of(
      "node a d 4 A100 1000 rack=r cpu=2000\n"
      "node b d 4 A100 1000 rack=r cpu=8000\n"
      "node c d 4 A100 1000 rack=r cpu=8000\n");
  EXPECT_EQ(parts(state, "normal count=8 cpu=8000"), "b=4 c=4");
  EXPECT_EQ(parts(state, "normal count=10 cpu=10000"), "a=2 b=4 c=4");
  EXPECT_EQ(parts(state, "normal count=11 cpu=11000"), "host");
}

TEST(Gang, D7_OneThatFitsANodeIsNotSpread) {
  const PoolState state = room({{"a1", "d", "a", 1}, {"a2", "d", "a", 1}, {"a3", "d", "a", 1}});
  EXPECT_EQ(parts(state, "normal count=3"), "a1=3");
  EXPECT_EQ(parts(state, "normal count=4"), "fragmented");
}

TEST(Gang, D7_VictimsOfAGangWithinARackAreOfOneRack) {
  PoolState state = pool_of(
      "node a1 d 2 A100 1000 rack=a\n"
      "node a2 d 2 A100 1000 rack=a\n"
      "node b1 d 2 A100 1000 rack=b\n"
      "node b2 d 2 A100 1000 rack=b\n"
      "task t1 normal on=a1:0-1 preemptions=0\n"
      "task t2 normal on=a2:0-1 preemptions=5\n"
      "task t3 normal on=b1:0-1 preemptions=0\n"
      "task t4 normal on=b2:0-1 preemptions=3\n");
  const auto nodes = [&](std::string_view demand) {
    const auto found = find_victims(state, demand_of(state, demand), testing::pool_now,
                                    testing::pool_now + minutes(11));
    std::set<std::string> names;
    if (!found) return names;
    for (const Slot& slot : found->slots) {
      names.insert(state.node(state.device(slot.device).node).name);
    }
    return names;
  };
  EXPECT_EQ(nodes("infer count=4"), (std::set<std::string>{"a1", "b1"}));
  EXPECT_EQ(nodes("infer count=4 within=rack"), (std::set<std::string>{"b1", "b2"}));
  EXPECT_EQ(nodes("infer count=6 within=rack"), (std::set<std::string>{}));
}

}  // namespace
}  // namespace neap::gang_test
