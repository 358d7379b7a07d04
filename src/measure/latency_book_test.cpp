// E2: windows of requests by class, team and model; burn of the SLO by two windows.
#include "measure/latency_book.h"

#include <gtest/gtest.h>

namespace neap::measure::latency_book_test {
namespace {

using End = RequestSeen::End;

Time at(std::int64_t s) { return Time(0) + seconds(s); }

RequestSeen request(std::int64_t second, std::int64_t first_byte_ms, End end = End::good) {
  RequestSeen one;
  one.ended = at(second);
  one.end = end;
  one.queued = milliseconds(5);
  one.first_byte_us = first_byte_ms * 1000;
  one.total = milliseconds(first_byte_ms + 100);
  one.bytes_out = 10;
  return one;
}

const SeriesReport* find(const std::vector<SeriesReport>& all, Dimension dimension,
                         const std::string& name) {
  for (const SeriesReport& one : all) {
    if (one.dimension == dimension && one.name == name) return &one;
  }
  return nullptr;
}

TEST(LatencyBook, E2_EachWindowHoldsItsOwn) {
  LatencyBook book;
  for (int second = 0; second < 3600; ++second) book.add("chat", request(second, second / 10));
  const auto all = book.report("chat", at(3600));
  ASSERT_EQ(all.size(), 1U);
  // A window holds the running slice and as many whole ones as its length.
  EXPECT_EQ(all[0].windows[0].requests, 60U);
  EXPECT_EQ(all[0].windows[1].requests, 300U);
  EXPECT_EQ(all[0].windows[2].requests, 3600U);
  EXPECT_GE(all[0].windows[0].first_byte.min(), milliseconds(353));
  EXPECT_EQ(all[0].windows[2].first_byte.max(), milliseconds(359));
  EXPECT_EQ(all[0].windows[2].bytes_out, 36'000U);
  EXPECT_EQ(book.report("chat", at(2 * 3600 + 600))[0].windows[2].requests, 0U);
  EXPECT_EQ(book.requests("chat"), 3600U);
  EXPECT_TRUE(book.report("nobody", at(0)).empty());
}

TEST(LatencyBook, E2_ByClassTeamAndModel) {
  LatencyBook book;
  RequestSeen high = request(1, 10);
  high.priority_class = "high";
  high.team = "red";
  RequestSeen low = request(1, 90);
  low.priority_class = "low";
  low.model = "m1";
  for (int i = 0; i < 3; ++i) book.add("chat", high);
  book.add("chat", low);
  const auto all = book.report("chat", at(2));
  EXPECT_EQ(all.front().dimension, Dimension::whole);
  EXPECT_EQ(all.front().windows[0].requests, 4U);
  EXPECT_EQ(find(all, Dimension::priority_class, "high")->windows[0].requests, 3U);
  EXPECT_EQ(find(all, Dimension::priority_class, "low")->windows[0].first_byte.max(),
            milliseconds(90));
  EXPECT_EQ(find(all, Dimension::team, "red")->windows[0].requests, 3U);
  EXPECT_EQ(find(all, Dimension::model, "m1")->windows[0].requests, 1U);
  EXPECT_EQ(find(all, Dimension::team, ""), nullptr);
}

TEST(LatencyBook, E2_NamesAreBoundedAndNothingIsLost) {
  LatencyBook book;
  for (int i = 0; i < 500; ++i) {
    RequestSeen one = request(1, 10);
    one.model = "m" + std::to_string(i);
    book.add("chat", one);
  }
  const auto all = book.report("chat", at(2));
  EXPECT_EQ(all.size(), 2 + LatencyBook::names_max);
  std::uint64_t sum = 0;
  for (const SeriesReport& one : all) {
    if (one.dimension == Dimension::model) sum += one.windows[0].requests;
  }
  EXPECT_EQ(sum, 500U);
  EXPECT_EQ(find(all, Dimension::model, LatencyBook::others)->windows[0].requests,
            500 - LatencyBook::names_max);
}

TEST(LatencyBook, E2_KindsOfEndsAreApart) {
  LatencyBook book;
  book.add("chat", request(1, 10));
  book.add("chat", request(1, 10, End::failed));
  book.add("chat", request(1, -1, End::shed));
  book.add("chat", request(1, 10, End::bad_request));
  book.add("chat", request(1, 10, End::left));
  const WindowTotals totals = book.report("chat", at(2))[0].windows[0];
  EXPECT_EQ(totals.requests, 5U);
  EXPECT_EQ(totals.good, 1U);
  EXPECT_EQ(totals.failed, 1U);
  EXPECT_EQ(totals.shed, 1U);
  EXPECT_EQ(totals.bad_requests, 1U);
  EXPECT_EQ(totals.left, 1U);
  EXPECT_EQ(totals.total.count(), 1U);
  EXPECT_EQ(totals.queued.count(), 4U);
}

// 20 % bad for five minutes after an hour that was well: the short window alone is no alarm.
TEST(LatencyBook, E2_BurnNeedsBothWindows) {
  LatencyBook book;
  const Objective objective{.first_byte = milliseconds(100), .part = Ppm(990'000)};
  std::int64_t second = 0;
  for (; second < 3600; ++second) book.add("chat", request(second, 50));
  EXPECT_EQ(book.burn("chat", objective, at(second)).fast.long_milli, 0);
  for (; second < 3900; ++second) book.add("chat", request(second, second % 5 == 0 ? 500 : 50));
  BurnReport burn = book.burn("chat", objective, at(second));
  EXPECT_NEAR(static_cast<double>(burn.fast.short_milli), 20'000, 1500);
  EXPECT_LT(burn.fast.long_milli, 14'400);
  EXPECT_FALSE(burn.fast.alarm);
  for (; second < 7800; ++second) book.add("chat", request(second, second % 5 == 0 ? 500 : 50));
  burn = book.burn("chat", objective, at(second));
  EXPECT_TRUE(burn.fast.alarm);
  EXPECT_TRUE(burn.slow.alarm);
  // Well again for five minutes: the long window remembers, the alarm ends.
  for (; second < 8200; ++second) book.add("chat", request(second, 50));
  burn = book.burn("chat", objective, at(second));
  EXPECT_GE(burn.fast.long_milli, 14'400);
  EXPECT_FALSE(burn.fast.alarm);
}

TEST(LatencyBook, E2_ShedAndBadRequestsBurnNothing) {
  LatencyBook book;
  for (int i = 0; i < 100; ++i) book.add("chat", request(i, 10, End::shed));
  for (int i = 0; i < 100; ++i) book.add("chat", request(i, 10, End::bad_request));
  EXPECT_EQ(book.burn("chat", {}, at(100)).fast.long_milli, -1);
  for (int i = 0; i < 5; ++i) book.add("chat", request(99, 10, End::failed));
  const BurnReport few = book.burn("chat", {}, at(100));
  EXPECT_EQ(few.fast.short_milli, 100'000);  // all of five, which are too few for an alarm
  EXPECT_FALSE(few.fast.alarm);
  for (int i = 0; i < 20; ++i) book.add("chat", request(99, 10, End::failed));
  EXPECT_TRUE(book.burn("chat", {}, at(100)).fast.alarm);
  EXPECT_EQ(book.burn("nobody", {}, at(100)).slow.long_milli, -1);
}

}  // namespace
}  // namespace neap::measure::latency_book_test
