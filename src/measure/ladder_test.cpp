#include "measure/ladder.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace neap::measure {
namespace {

Diagnosis fought_over(Resource resource) {
  Diagnosis out;
  out.resource = resource;
  out.neighbour = "train";
  out.evidence = {{"waits for a processor", "%", 70, 20}};
  return out;
}

// A pool in virtual time: a window every 5 s; what is enough keeps the service quick.
struct Scene {
  Ladder ladder;
  Rung enough = Rung::quota;
  bool pressed = true;  // the neighbours want the resource
  Time now{0};
  std::vector<LadderMove> moves;

  void run(Micros length) {
    for (const Time end = now + length; now < end; now = now + seconds(5)) {
      const bool slow = pressed && ladder.rung() < enough;
      const auto move = ladder.look(now, slow ? fought_over(Resource::cpu) : Diagnosis{});
      if (!move) continue;
      ladder.moved(*move);
      moves.push_back(*move);
    }
  }
};

TEST(Ladder, B7_OneRungAfterAnotherUntilItIsEnough) {
  Scene scene;
  scene.run(minutes(2));
  ASSERT_EQ(scene.moves.size(), 2u);
  EXPECT_EQ(scene.moves[0].to, Rung::flow);
  EXPECT_EQ(scene.moves[1].to, Rung::quota);
  EXPECT_EQ(scene.moves[0].at, Time(seconds(15).value));
  EXPECT_GE((scene.moves[1].at - scene.moves[0].at).value, seconds(15).value);
  EXPECT_NE(scene.moves[0].why.find("waits for a processor 70.0 % (from 20.0)"), std::string::npos)
      << scene.moves[0].why;
  EXPECT_EQ(scene.moves[0].neighbour, "train");
}

TEST(Ladder, B7_StepsBackWhenItIsNotNeeded) {
  Scene scene;
  scene.run(minutes(2));
  scene.pressed = false;
  scene.run(minutes(30));
  EXPECT_EQ(scene.ladder.rung(), Rung::none);
  EXPECT_EQ(scene.moves.size(), 4u);
  EXPECT_EQ(scene.ladder.resource(), Resource::none);
}

TEST(Ladder, B7_ARungThatProvesToBeNeededIsTriedLessOften) {
  Scene scene;
  scene.run(hours(12));
  EXPECT_GE(scene.ladder.rung(), Rung::flow);
  EXPECT_EQ(scene.ladder.calm_needed(), hours(1));
  // Up twice, then at 5, 10, 20, 40, 60, 60, … minutes a try and back.
  EXPECT_LE(scene.moves.size(), 2u + 2 * 16);
  EXPECT_GE(scene.moves.size(), 2u + 2 * 8);
}

TEST(Ladder, B7_WhatCannotBeDoneHereIsPassedOver) {
  Ladder ladder;
  const Diagnosis bad = fought_over(Resource::storage);
  Time now{0};
  (void)ladder.look(now, bad);
  now = now + seconds(20);
  auto move = ladder.look(now, bad);
  ASSERT_TRUE(move);
  ladder.impossible(*move, "no I/O weight here");
  move = ladder.look(now, bad);
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, Rung::quota);
  ASSERT_EQ(ladder.closed().size(), 1u);
  EXPECT_EQ(ladder.closed()[0], "flow: no I/O weight here");
}

TEST(Ladder, B7_OwnLoadMovesNothing) {
  Ladder ladder;
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(ladder.look(Time(seconds(5).value * i), fought_over(Resource::own_load)));
  }
}

}  // namespace
}  // namespace neap::measure
