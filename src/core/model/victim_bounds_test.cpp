#include "core/model/victim_bounds.h"

#include <gtest/gtest.h>

namespace neap {
namespace {

using Bound = VictimBounds::Bound;

DemandClass class_of(std::int32_t count) {
  DemandClass out;
  out.shape.request.count = count;
  return out;
}

// Measures costs out of a list, and counts how often.
struct Measured {
  VictimBounds bounds;
  std::vector<std::int64_t> costs;
  std::vector<Time> until = std::vector<Time>(64, Time::never());
  int measured = 0;

  const VictimBounds::Tree& tree(Time now = Time(0), std::int32_t count = 1) {
    return bounds.up_to_date(class_of(count), costs.size(), now, [&](NodeId node) {
      ++measured;
      return Bound{costs[node.value], until[node.value]};
    });
  }
  std::string order(Time now = Time(0)) {
    std::string out;
    NodesByBound nodes(tree(now));
    for (auto next = nodes.peek(); next; next = nodes.peek()) {
      out += std::to_string(next->node.value) + "=" + std::to_string(next->cost) + " ";
      nodes.take();
    }
    return out;
  }
};

TEST(VictimBounds, NodesComeByBoundThenId) {
  Measured m{.costs = {7, 3, VictimBounds::infeasible, 3, 0}};
  EXPECT_EQ(m.order(), "4=0 1=3 3=3 0=7 ");
  EXPECT_EQ(m.measured, 5);
}

TEST(VictimBounds, OnlyTouchedNodesAreMeasuredAgain) {
  Measured m{.costs = {7, 3, 5}};
  (void)m.order();
  m.costs = {1, 9, 9};
  m.bounds.touch(NodeId(0));
  EXPECT_EQ(m.order(), "0=1 1=3 2=5 ");
  EXPECT_EQ(m.measured, 4);
  m.bounds.touch_all();
  EXPECT_EQ(m.order(), "0=1 1=9 2=9 ");
}

TEST(VictimBounds, ABoundHoldsUntilItsMoment) {
  Measured m{.costs = {7, 3}};
  m.until[1] = Time(10);
  EXPECT_EQ(m.order(Time(0)), "1=3 0=7 ");
  m.costs = {0, 20};
  m.until[1] = Time::never();
  EXPECT_EQ(m.order(Time(9)), "1=3 0=7 ");
  EXPECT_EQ(m.order(Time(10)), "0=7 1=20 ");
  EXPECT_EQ(m.measured, 3);
}

TEST(VictimBounds, NodesMayJoin) {
  Measured m{.costs = {7}};
  EXPECT_EQ(m.order(), "0=7 ");
  m.costs = {7, 9, 2, 8, 1};
  EXPECT_EQ(m.order(), "4=1 2=2 0=7 3=8 1=9 ");
  EXPECT_EQ(m.measured, 5);
}

TEST(VictimBounds, AnEmptyPoolHasNoNodes) {
  Measured m;
  EXPECT_EQ(m.order(), "");
}

TEST(VictimBounds, TheClassNotAskedForLongestMakesRoom) {
  Measured m{.costs = {1}};
  const auto kept = static_cast<std::int32_t>(VictimBounds::classes_kept);
  for (std::int32_t c = 0; c < kept; ++c) (void)m.tree(Time(0), c);
  (void)m.tree(Time(0), 0);     // 1 is now the oldest
  (void)m.tree(Time(0), kept);  // takes its place
  EXPECT_EQ(m.bounds.classes(), VictimBounds::classes_kept);
  EXPECT_EQ(m.measured, kept + 1);
  (void)m.tree(Time(0), 0);
  EXPECT_EQ(m.measured, kept + 1);
  (void)m.tree(Time(0), 1);
  EXPECT_EQ(m.measured, kept + 2);
}

TEST(VictimBounds, SettlingLeavesLessToMeasure) {
  Measured m{.costs = {7, 3, 5}};
  (void)m.order();
  m.costs = {1, 1, 1};
  m.bounds.touch_all();
  int settled = 0;
  m.bounds.settle(3, Time(0), 2, [&](const DemandClass&, NodeId node) {
    ++settled;
    return Bound{m.costs[node.value], Time::never()};
  });
  EXPECT_EQ(settled, 2);
  EXPECT_EQ(m.order(), "0=1 1=1 2=1 ");
  EXPECT_EQ(m.measured, 4);
}

// Many short-lived bounds do not pile up alarms, and the last one counts.
TEST(VictimBounds, AlarmsAreKeptFew) {
  Measured m{.costs = {5, 5}};
  for (int i = 1; i <= 1'000; ++i) {
    m.until[0] = Time(2'000 + i);
    m.bounds.touch(NodeId(0));
    (void)m.tree(Time(i));
  }
  m.costs[0] = 1;
  m.until[0] = Time::never();
  EXPECT_EQ(m.order(Time(2'999)), "0=5 1=5 ");
  EXPECT_EQ(m.order(Time(3'000)), "0=1 1=5 ");
}

}  // namespace
}  // namespace neap
