// D4: what a column of the guard's picture stands for, and gaps that are not drawn as nothing.
#include "simulate/run/picture/guard_picture.h"

#include <gtest/gtest.h>

namespace neap::whatif {
namespace {

simulate::Backtest result_of(std::vector<lead_time::Claim> claims) {
  simulate::Backtest result;
  result.claims = std::move(claims);
  result.scored = {0, static_cast<std::int64_t>(result.claims.size()) - 1};
  return result;
}

TEST(GuardPicture, D4_a_column_is_the_highest_demand_above_the_lowest_guard) {
  const auto result = result_of({{9, 3, true}, {5, 1, true}, {7, 0, true}, {7, 0, true}});
  const auto columns = guard_columns(result, {4, 6, std::nullopt, std::nullopt}, 2);
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].demand, 6);
  EXPECT_EQ(columns[0].guard, 5);
  EXPECT_EQ(columns[0].with_buffer, 6);
  EXPECT_TRUE(columns[0].known && columns[0].violated);
  EXPECT_FALSE(columns[1].known || columns[1].violated);
}

TEST(GuardPicture, D4_slots_without_metrics_are_gaps) {
  const auto result = result_of(std::vector<lead_time::Claim>(5, {9, 0, true}));
  const auto curves = [&](const simulate::SlotDemand& demand) {
    const std::string page = guard_picture({10, 600, 600, 10}, result, demand, {"a <note>"});
    EXPECT_NE(page.find("a &lt;note&gt;"), std::string::npos);
    std::size_t found = 0;
    for (std::size_t at = page.find("<polyline"); at != std::string::npos;
         at = page.find("<polyline", at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(curves({1, 2, 3, 4, 5}), 3U) << "demand, guard, guard and buffer";
  EXPECT_EQ(curves({1, std::nullopt, 3, 4, std::nullopt}), 4U);
}

}  // namespace
}  // namespace neap::whatif
