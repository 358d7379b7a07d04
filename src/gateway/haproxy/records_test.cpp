// E2: what is made of the proxy's records.
#include "gateway/haproxy/records.h"

#include <gtest/gtest.h>

namespace neap::gateway::records_test {
namespace {

Time at(std::int64_t s) { return Time(0) + seconds(s); }

TEST(RequestRecords, E2_ALineOfTheLog) {
  const auto record = parse_record("R2 1000 chat a12 200 -- 40 1200000 250000 10 20 0 - - - -");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->service, "chat");
  EXPECT_EQ(record->allocation, AllocationId(12));
  EXPECT_EQ(record->status, 200);
  EXPECT_TRUE(record->complete);
  EXPECT_EQ(record->queued, milliseconds(40));
  EXPECT_EQ(record->total, milliseconds(1200));
  EXPECT_EQ(record->first_byte, milliseconds(250));
  EXPECT_FALSE(failed(*record));
  const auto held = parse_record("R2 1000 chat a12 200 -- 40,60000 1200000 250000 10 20 0 - - - -");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->queued, milliseconds(100));
  const auto at_once = parse_record("R2 1000 chat a12 200 -- 40,- 1200000 250000 10 20 0 - - - -");
  EXPECT_EQ(at_once->queued, milliseconds(40));
}

TEST(RequestRecords, E2_RequestsWithoutAReplicaOrAnEnd) {
  const auto refused = parse_record("R2 1000 chat <NOSRV> 503 SC -1 900 - 10 20 0 - - - -");
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->allocation.valid());
  EXPECT_TRUE(failed(*refused));
  const auto cut = parse_record("R2 1000 chat a1 200 SD 0 900 100 10 20 0 - - - -");
  EXPECT_TRUE(failed(*cut));
  const auto left = parse_record("R2 1000 chat a1 200 CD 0 900 100 10 20 0 - - - -");
  EXPECT_FALSE(failed(*left));  // the client's choice
  EXPECT_FALSE(left->complete);
}

TEST(RequestRecords, E2_WordsOfClients) {
  const auto record =
      parse_record("R2 99 chat a1 200 -- 0 9 1 120 4096 1 high red llama%2D7b%20x%0A run%3A7");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->ended, Time(99));
  EXPECT_EQ(record->priority_class, "high");
  EXPECT_EQ(record->team, "red");
  EXPECT_EQ(record->model, "llama-7b?x?");
  EXPECT_EQ(record->request_id, "run:7");
  EXPECT_EQ(record->bytes_in, 120U);
  EXPECT_EQ(record->bytes_out, 4096U);
  EXPECT_EQ(record->retries, 1);
  // Cut by the log's own limit of a line: nothing else is lost.
  const auto cut = parse_record("R2 99 chat a1 200 -- 0 9 1 120 4096 1 high red ll%2");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->team, "red");
  EXPECT_EQ(cut->request_id, "");
  const auto long_name =
      parse_record("R2 99 chat a1 200 -- 0 9 1 1 4 1 - - " + std::string(900, 'm') + " -");
  ASSERT_TRUE(long_name);
  EXPECT_EQ(long_name->model.size(), 128U);
}

// The frontend's own answer has no backend; it is of the service all the same.
TEST(RequestRecords, E2_EndsAsTheBookCountsThem) {
  using End = measure::RequestSeen::End;
  const auto end_of = [](const char* line) { return seen_of(*parse_record(line)).end; };
  const auto shed = parse_record("R2 9 f:chat <NOSRV> 429 PR -1 20 - 1 2 0 low - - -");
  EXPECT_EQ(shed->service, "chat");
  EXPECT_EQ(seen_of(*shed).end, End::shed);
  EXPECT_EQ(end_of("R2 9 chat a1 200 -- 0 20 5 1 2 0 - - - -"), End::good);
  EXPECT_EQ(end_of("R2 9 chat a1 404 -- 0 20 5 1 2 0 - - - -"), End::bad_request);
  EXPECT_EQ(end_of("R2 9 f:chat <NOSRV> 400 PR -1 20 - 1 2 0 - - - -"), End::bad_request);
  EXPECT_EQ(end_of("R2 9 chat a1 200 SD 0 20 5 1 2 0 - - - -"), End::failed);
  EXPECT_EQ(end_of("R2 9 chat <NOSRV> 503 sQ 0 20 - 1 2 0 - - - -"), End::failed);
  EXPECT_EQ(end_of("R2 9 chat a1 200 CD 0 20 5 1 2 0 - - - -"), End::left);
  EXPECT_EQ(end_of("R2 9 chat <NOSRV> 429 sQ 0 20 - 1 2 0 - - - -"), End::shed);
}

TEST(RequestRecords, OtherLinesAreNotRecords) {
  for (const char* line :
       {"", "Proxy chat stopped (FE: 104 conns, BE: 0 conns).", "R2", "R2 a b",
        "R2 5 chat a1 200 -- 0 1 1 0 0 0 -", "R2 5 chat a1 OK -- 0 1 1 0 0 0 - - - -",
        "R1 5 chat a1 200 -- 0 1 1 0 0 0 - - - -", "R2 5 chat a1 200 - 0 1 1 0 0 0 - - - -",
        "R2 -5 chat a1 200 -- 0 1 1 0 0 0 - - - -", "R2 x chat a1 200 -- 0 1 1 0 0 0 - - - -",
        "R2 5 chat a1 200 -- 0 1 1 0 0 0 - - - - more"}) {
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
  add("R2 1000 chat a1 200 -- 0 1000 300000 10 20 0 - - - -", at(1));       // in time, just
  add("R2 1000 chat a1 200 -- 500 2000000 300001 10 20 0 - - - -", at(9));  // late
  add("R2 1000 chat a1 500 -- 0 1000 100 10 20 0 - - - -", at(9));          // in time, and wrong
  add("R2 1000 chat a2 200 -- 0 4000 100 10 20 0 - - - -", at(9));
  add("R2 1000 chat a1 200 CD 0 4000 100 10 20 0 - - - -",
      at(9));  // left: neither answered nor failed
  add("R2 1000 chat a1 200 -- 0 5000 100 10 20 0 - - - -", at(10));
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
}  // namespace neap::gateway::records_test
