// E2: what is made of the proxy's records.
#include "gateway/haproxy/records.h"

#include <gtest/gtest.h>

namespace neap::gateway {
namespace {

Time at(std::int64_t s) { return Time(0) + seconds(s); }

TEST(RequestRecords, E2_ALineOfTheLog) {
  const auto record = parse_record("R1 chat a12 200 -- 40 1200000 250000");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->service, "chat");
  EXPECT_EQ(record->allocation, AllocationId(12));
  EXPECT_EQ(record->status, 200);
  EXPECT_TRUE(record->complete);
  EXPECT_EQ(record->queued, milliseconds(40));
  EXPECT_EQ(record->total, milliseconds(1200));
  EXPECT_EQ(record->first_byte, milliseconds(250));
  EXPECT_FALSE(failed(*record));
}

TEST(RequestRecords, E2_RequestsWithoutAReplicaOrAnEnd) {
  const auto refused = parse_record("R1 chat <NOSRV> 503 SC -1 900 -");
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->allocation.valid());
  EXPECT_TRUE(failed(*refused));
  const auto cut = parse_record("R1 chat a1 200 SD 0 900 100");
  EXPECT_TRUE(failed(*cut));
  const auto left = parse_record("R1 chat a1 200 CD 0 900 100");
  EXPECT_FALSE(failed(*left));  // the client's choice
  EXPECT_FALSE(left->complete);
}

TEST(RequestRecords, OtherLinesAreNotRecords) {
  for (const char* line :
       {"", "Proxy chat stopped (FE: 104 conns, BE: 0 conns).", "R1", "R1 a b",
        "R1 chat a1 200 -- 0 1", "R1 chat a1 OK -- 0 1 1", "R2 chat a1 200 -- 0 1 1",
        "R1 chat a1 200 - 0 1 1", "R1 chat a1 200 -- 0 1 1 more"}) {
    EXPECT_FALSE(parse_record(line)) << line;
  }
}

TEST(RequestRecords, LinesComeInPieces) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  cutter.feed("one\ntw", keep);
  cutter.feed("o\n\nthree", keep);
  cutter.feed("\n", keep);
  cutter.feed(std::string(5000, 'x'), keep);
  cutter.feed("\nfour\n", keep);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "three", "four"}));
}

TEST(RequestTally, E2_SumsBySliceAndReplica) {
  RequestTally tally;
  const auto add = [&](const char* line, Time when) {
    tally.add(*parse_record(line), milliseconds(300), when);
  };
  add("R1 chat a1 200 -- 0 1000 300000", at(1));       // in time, just
  add("R1 chat a1 200 -- 500 2000000 300001", at(9));  // late
  add("R1 chat a1 500 -- 0 1000 100", at(9));          // in time, and wrong
  add("R1 chat a2 200 -- 0 4000 100", at(9));
  add("R1 chat a1 200 CD 0 4000 100", at(9));  // left: neither answered nor failed
  add("R1 chat a1 200 -- 0 5000 100", at(10));
  EXPECT_TRUE(tally.take_closed(at(9)).empty());
  const std::vector<RequestSlice> closed = tally.take_closed(at(10));
  ASSERT_EQ(closed.size(), 2U);
  EXPECT_EQ(closed[0].allocation, AllocationId(1));
  EXPECT_EQ(closed[0].start, at(0));
  EXPECT_EQ(closed[0].totals, (measure::RequestTotals{.responses = 3,
                                                      .within_slo = 1,
                                                      .failures = 1,
                                                      .busy = Micros(1'502'000),
                                                      .busy_within_slo = Micros(1000)}));
  EXPECT_EQ(closed[1].allocation, AllocationId(2));
  EXPECT_EQ(tally.take_all().size(), 1U);
  EXPECT_TRUE(tally.take_all().empty());
}

}  // namespace
}  // namespace neap::gateway
