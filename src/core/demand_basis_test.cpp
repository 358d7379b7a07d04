// D8: what placement reckons with, from the first task to a learned table.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/model/demand.h"
#include "core/model/state.h"
#include "core/rules/place/leftover_table.h"
#include "core/testing/script.h"

namespace neap::demand_basis_test {
namespace {

using testing::Script;

std::int64_t tasks_in(const std::vector<DemandCount>& kinds) {
  return std::accumulate(
      kinds.begin(), kinds.end(), std::int64_t{0},
      [](std::int64_t sum, const DemandCount& count) { return sum + count.tasks; });
}

class DemandBasis : public ::testing::Test {
 protected:
  DemandBasis() {
    script_.configure();
    script_.node("n0", "d0", 2);
  }

  // Tasks that come and go, so that there is demand and an empty pool.
  void demand(std::int64_t tasks) {
    for (std::int64_t i = 0; i < tasks; ++i) {
      const std::string name = "t" + std::to_string(next_++);
      ASSERT_TRUE(script_.submit(Script::training(name)));
      script_.started(name);
      script_.exited(name, 0);
    }
  }

  [[nodiscard]] PoolState& state() { return script_.state; }
  [[nodiscard]] PlacementLearned learned() {
    return {state().demand.seen, state().demand.kinds,
            std::vector<std::int32_t>(leftover::core_rows * leftover::idle_steps, 1'000)};
  }

  Script script_;
  std::int64_t next_ = 0;
};

TEST_F(DemandBasis, D8_CountsWhatWasAdmittedAndNothingElse) {
  demand(2);
  EXPECT_EQ(state().demand.seen, 2);
  EXPECT_FALSE(script_.submit(Script::training("wide", 3))) << "more than there is";
  EXPECT_EQ(state().demand.seen, 2) << "what was refused is no demand";
  ASSERT_TRUE(script_.submit(Script::training("waits", 2)));
  ASSERT_TRUE(script_.submit(Script::training("behind", 2)));
  EXPECT_EQ(state().demand.seen, 4) << "what waits was asked for";
}

// Until there is a table, placement goes by the demand as it was when that had doubled.
TEST_F(DemandBasis, D8_TheBasisFollowsEachDoublingOfTheDemand) {
  std::vector<std::int64_t> seen_at;
  for (int i = 0; i < 40; ++i) {
    const std::uint32_t before = state().basis.version;
    demand(1);
    if (state().basis.version == before) continue;
    EXPECT_EQ(state().basis.version, before + 1);
    EXPECT_EQ(state().basis.seen, state().demand.seen);
    EXPECT_EQ(tasks_in(state().basis.kinds), state().demand.seen);
    seen_at.push_back(state().basis.seen);
  }
  ASSERT_GE(seen_at.size(), 2U);
  for (std::size_t i = 1; i < seen_at.size(); ++i) EXPECT_EQ(seen_at[i], 2 * seen_at[i - 1]);
  EXPECT_TRUE(state().basis.table.empty());
}

TEST_F(DemandBasis, D8_ATableEndsTheDoubling) {
  demand(10);
  ASSERT_TRUE(script_.event(learned()));
  const PlacementBasis basis = state().basis;
  EXPECT_EQ(basis.seen, 10);
  EXPECT_EQ(basis.table.size(), leftover::core_rows * leftover::idle_steps);
  demand(60);
  EXPECT_EQ(state().basis.version, basis.version);
  EXPECT_EQ(state().basis.seen, 10);
  EXPECT_EQ(state().demand.seen, 70);
}

TEST_F(DemandBasis, D8_LearningIsDueAfterAThousandThenAtEachDoublingOr16000More) {
  state().demand.seen = demand_to_learn_from - 1;
  EXPECT_FALSE(learning_is_due(state()));
  state().demand.seen = demand_to_learn_from;
  EXPECT_TRUE(learning_is_due(state()));
  // A basis without a table is no lesson.
  state().basis.seen = demand_to_learn_from;
  EXPECT_TRUE(learning_is_due(state()));
  const struct {
    std::int64_t known, due;
  } cases[] = {{1'000, 2'000},   {1'500, 3'000},     {15'999, 31'998}, {16'000, 32'000},
               {16'001, 32'001}, {100'000, 116'000}, {10, 1'000}};
  state().basis.table.resize(leftover::core_rows * leftover::idle_steps);
  for (const auto& [known, due] : cases) {
    state().basis.seen = known;
    state().demand.seen = known;
    EXPECT_FALSE(learning_is_due(state())) << known;
    state().demand.seen = due - 1;
    EXPECT_FALSE(learning_is_due(state())) << known;
    state().demand.seen = due;
    EXPECT_TRUE(learning_is_due(state())) << known;
  }
}

TEST_F(DemandBasis, D8_BadTablesAreRefusedAndChangeNothing) {
  demand(5);
  const std::uint64_t before = hash_of(state());
  const auto refused = [&](const char* field, auto spoil) {
    PlacementLearned event = learned();
    spoil(event);
    const auto answer = script_.event(event);
    ASSERT_FALSE(answer) << field;
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(answer.error().context, field);
    EXPECT_EQ(hash_of(state()), before);
  };
  refused("table", [](PlacementLearned& e) { e.table.clear(); });
  refused("table", [](PlacementLearned& e) { e.table.pop_back(); });
  refused("table", [](PlacementLearned& e) { e.table.push_back(0); });
  refused("table", [](PlacementLearned& e) { e.table.front() = -1; });
  refused("table", [](PlacementLearned& e) {
    e.table.back() = leftover::whole * static_cast<std::int32_t>(leftover::potential_unit) + 1;
  });
  refused("kinds", [](PlacementLearned& e) { ++e.seen; });
  refused("kinds", [](PlacementLearned& e) { e.seen = -1; });
  refused("kinds",
          [](PlacementLearned& e) { e.kinds.resize(most_demand_kinds + 1, e.kinds.front()); });
  refused("kinds", [](PlacementLearned& e) { e.kinds.front().tasks = 0; });
  refused("kinds", [](PlacementLearned& e) { e.kinds.front().tasks = -1; });
  EXPECT_TRUE(script_.event(learned()));
  EXPECT_NE(hash_of(state()), before);
}

// A replay places as the pool did: the book, the basis and the table are part of the state.
TEST_F(DemandBasis, D8_G3_DemandAndTableAreInTheHash) {
  demand(7);
  ASSERT_TRUE(script_.event(learned()));
  demand(2);
  PoolState copy(state());
  EXPECT_EQ(hash_of(copy), hash_of(state()));
  copy.basis.table[3] += 1;
  EXPECT_NE(hash_of(copy), hash_of(state())) << "the table is in the hash";
  copy.basis.table[3] -= 1;
  copy.demand.kinds.at(0).tasks += 1;
  EXPECT_NE(hash_of(copy), hash_of(state())) << "and so is the demand";
}

}  // namespace
}  // namespace neap::demand_basis_test
