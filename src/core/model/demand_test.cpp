// D8: what placement reckons with is what the pool was asked for, in bounded room.
#include "core/model/demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace neap::demand_test {
namespace {

Request request_of(std::int32_t count, MilliGpu share = whole_device, MiB memory = MiB(0)) {
  Request request;
  request.count = count;
  request.share = share;
  request.memory = memory;
  return request;
}

std::int64_t tasks_in(const DemandBook& book) {
  return std::accumulate(
      book.kinds.begin(), book.kinds.end(), std::int64_t{0},
      [](std::int64_t sum, const DemandCount& count) { return sum + count.tasks; });
}

std::int64_t tasks_of(const DemandBook& book, std::int64_t cpu_milli) {
  for (const DemandCount& count : book.kinds) {
    if (count.kind.cpu_milli == cpu_milli) return count.tasks;
  }
  return 0;
}

// Kinds that differ in nothing but their processors, to have as many as a test needs.
Request kind_number(std::int64_t number) {
  Request request;
  request.cpu_milli = number;
  return request;
}

void note_often(DemandBook& book, const Request& request, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) note_demand(book, request);
}

TEST(Demand, D8_TasksThatAskForTheSameAreOneKind) {
  DemandBook book;
  note_often(book, request_of(1), 3);
  note_often(book, request_of(2), 2);
  note_demand(book, request_of(1, MilliGpu(500), MiB(8'192)));
  Request named = request_of(1);
  named.models = {"T4-16G"};
  note_demand(book, named);
  // What no score looks at makes no kind of its own.
  Request elsewhere = request_of(1);
  elsewhere.host_memory = MiB(4'096);
  elsewhere.trust_domain = "team";
  elsewhere.near.exclude = {"n1"};
  note_demand(book, elsewhere);
  EXPECT_EQ(book.seen, 8);
  ASSERT_EQ(book.kinds.size(), 4U);
  EXPECT_TRUE(
      std::is_sorted(book.kinds.begin(), book.kinds.end(),
                     [](const DemandCount& a, const DemandCount& b) { return a.kind < b.kind; }));
  const auto tasks = [&](const DemandKind& kind) {
    const auto found = std::find_if(book.kinds.begin(), book.kinds.end(),
                                    [&](const DemandCount& count) { return count.kind == kind; });
    return found == book.kinds.end() ? 0 : found->tasks;
  };
  EXPECT_EQ(tasks({0, 1, whole_device, MiB(0), {}}), 4);
  EXPECT_EQ(tasks({0, 2, whole_device, MiB(0), {}}), 2);
  EXPECT_EQ(tasks({0, 1, MilliGpu(500), MiB(8'192), {}}), 1);
  EXPECT_EQ(tasks({0, 1, whole_device, MiB(0), {"T4-16G"}}), 1);
}

TEST(Demand, D8_MemoryIsRoundedUpToEighthsOfADoubling) {
  const std::pair<std::int64_t, std::int64_t> cases[] = {
      {0, 0},         {1, 1},           {7, 7},           {8, 8},
      {9, 9},         {15, 15},         {16, 16},         {17, 18},
      {31, 32},       {33, 36},         {1'000, 1'024},   {1'025, 1'152},
      {1'152, 1'152}, {16'384, 16'384}, {16'385, 18'432}, {80'000, 81'920}};
  for (const auto& [asked, kept] : cases) {
    DemandBook book;
    note_demand(book, request_of(1, MilliGpu(100), MiB(asked)));
    EXPECT_EQ(book.kinds.at(0).kind.memory.value, kept) << asked;
  }
  // Never less than what was asked, never an eighth more, and never the other way round.
  std::int64_t last = 0;
  for (std::int64_t asked = 1; asked < 200'000; asked += 7) {
    DemandBook book;
    note_demand(book, request_of(1, MilliGpu(100), MiB(asked)));
    const std::int64_t kept = book.kinds.at(0).kind.memory.value;
    ASSERT_GE(kept, asked);
    ASSERT_LT((kept - asked) * 8, asked) << asked;
    ASSERT_GE(kept, last) << asked;
    last = kept;
  }
}

TEST(Demand, D8_TheRarestKindMakesRoomForANewOne) {
  DemandBook book;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(most_demand_kinds); ++i) {
    note_often(book, kind_number(1 + i), i == 300 ? 1 : 2);
  }
  ASSERT_EQ(book.kinds.size(), most_demand_kinds);
  EXPECT_EQ(tasks_of(book, 301), 1);
  // Both ends of the order, so that where the new one stands does not matter.
  note_demand(book, kind_number(9'999));
  EXPECT_EQ(book.kinds.size(), most_demand_kinds);
  EXPECT_EQ(tasks_of(book, 301), 0) << "the only one that came once";
  EXPECT_EQ(tasks_of(book, 9'999), 1);
  note_demand(book, kind_number(0));
  EXPECT_EQ(book.kinds.size(), most_demand_kinds);
  EXPECT_EQ(tasks_of(book, 9'999), 0) << "now the rarest";
  EXPECT_EQ(tasks_of(book, 0), 1) << "a new one stays, though nothing is rarer";
  EXPECT_EQ(book.seen, 2 * static_cast<std::int64_t>(most_demand_kinds) + 1);
}

TEST(Demand, D8_CountsAreHalvedAndWhatIsThenNothingGoes) {
  DemandBook book;
  note_often(book, kind_number(1), most_demand_tasks - 3);
  note_often(book, kind_number(2), 2);
  note_demand(book, kind_number(3));
  EXPECT_EQ(tasks_in(book), most_demand_tasks);
  EXPECT_EQ(book.kinds.size(), 3U);
  note_demand(book, kind_number(1));
  EXPECT_EQ(tasks_of(book, 1), (most_demand_tasks - 2) / 2);
  EXPECT_EQ(tasks_of(book, 2), 1);
  EXPECT_EQ(book.kinds.size(), 2U) << "half a task is none";
  EXPECT_EQ(book.seen, most_demand_tasks + 1) << "what was seen is not halved";
}

// After a change of what is asked for, the new demand soon weighs more than a long past.
TEST(Demand, D8_OlderDemandCountsLess) {
  DemandBook book;
  note_often(book, kind_number(1), 1'000'000);
  note_often(book, kind_number(2), 2 * most_demand_tasks);
  EXPECT_GT(tasks_of(book, 2), 2 * tasks_of(book, 1));
  EXPECT_LE(tasks_in(book), most_demand_tasks);
}

// However the tasks come, the book stays within its room.
TEST(Demand, D8_TheBookIsBounded) {
  DemandBook book;
  std::uint64_t draw = 1;
  for (int i = 0; i < 40'000; ++i) {
    draw = draw * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    note_demand(book, kind_number(static_cast<std::int64_t>((draw >> 33) % 2'000)));
    ASSERT_LE(book.kinds.size(), most_demand_kinds);
    ASSERT_LE(tasks_in(book), most_demand_tasks);
  }
  EXPECT_EQ(book.seen, 40'000);
  EXPECT_TRUE(std::all_of(book.kinds.begin(), book.kinds.end(),
                          [](const DemandCount& count) { return count.tasks > 0; }));
}

}  // namespace
}  // namespace neap::demand_test
