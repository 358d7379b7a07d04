#include "journal/testing/journal_fixture.h"

namespace neap::journal {
namespace {

using testing::Copy;
using testing::JournalTest;

std::vector<std::byte> blob_of(std::size_t size, int seed) {
  std::vector<std::byte> blob(size);
  for (std::size_t i = 0; i < size; ++i) {
    blob[i] = static_cast<std::byte>((i * 2'654'435'761U + static_cast<unsigned>(seed)) >> 7);
  }
  return blob;
}

LoadedSnapshot load(const std::string& path) {
  auto loaded = Reader::open(path).value().load_snapshot();
  EXPECT_TRUE(loaded.has_value()) << to_string(loaded.error());
  return loaded ? *loaded : LoadedSnapshot{};
}

// Ten records before each of three snapshots: at 10, 20 and 30. Five more follow.
class Snapshots : public JournalTest {
 protected:
  Snapshots() {
    Journal journal = open();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(journal.append(batch_of(static_cast<std::uint64_t>(i) * 10 + 1, 10)));
      EXPECT_TRUE(journal.snapshot(blob_of(2'500'000, i)));
    }
    EXPECT_TRUE(journal.append(batch_of(31, 5)));
    EXPECT_TRUE(journal.flush());
  }
};

TEST_F(JournalTest, NoSnapshotMeansReplayFromTheStart) {
  fill(3);
  EXPECT_FALSE(load(path_).snapshot.has_value());
}

TEST_F(Snapshots, NewestIsLoadedAndTwoAreKept) {
  const LoadedSnapshot loaded = load(path_);
  ASSERT_TRUE(loaded.snapshot);
  EXPECT_EQ(loaded.snapshot->sequence, 30U);
  EXPECT_EQ(loaded.snapshot->time, Time(300));
  EXPECT_EQ(loaded.snapshot->blob, blob_of(2'500'000, 2));
  auto connection = open_for_reading(path_).value();
  EXPECT_EQ(connection.query_int("SELECT count(*) FROM snapshot").value(), 2);
  EXPECT_EQ(connection.query_int("SELECT count(*) FROM snapshot_part").value(), 6);
}

TEST_F(Snapshots, FallsBackToTheOlderWhenTheNewestIsDamaged) {
  tamper(
      "UPDATE snapshot_part SET bytes = zeroblob(length(bytes))"
      " WHERE sequence = 30 AND part = 1");
  const LoadedSnapshot loaded = load(path_);
  ASSERT_TRUE(loaded.snapshot);
  EXPECT_EQ(loaded.snapshot->sequence, 20U);
  EXPECT_EQ(loaded.snapshot->blob, blob_of(2'500'000, 1));
  ASSERT_EQ(loaded.rejected.size(), 1U);
  EXPECT_NE(loaded.rejected[0].find("checksum"), std::string::npos) << loaded.rejected[0];
  EXPECT_NE(read_error(), "");
}

TEST_F(Snapshots, FallsBackWhenAPartIsMissing) {
  tamper("DELETE FROM snapshot_part WHERE sequence = 30 AND part = 2");
  EXPECT_EQ(load(path_).snapshot->sequence, 20U);
}

TEST_F(Snapshots, OfAnotherHistoryIsRefused) {
  tamper("UPDATE snapshot SET chain = randomblob(16) WHERE sequence = 30");
  EXPECT_EQ(load(path_).snapshot->sequence, 20U);
}

TEST_F(Snapshots, BothDamagedMeansReplayFromTheStart) {
  tamper("UPDATE snapshot SET checksum = randomblob(16)");
  const LoadedSnapshot loaded = load(path_);
  EXPECT_FALSE(loaded.snapshot);
  EXPECT_EQ(loaded.rejected.size(), 2U);
}

TEST_F(JournalTest, EmptyAndRepeatedSnapshotsAreFine) {
  std::vector<std::uint64_t> complete;
  {
    Journal journal = open({.on_snapshot = [&](std::uint64_t n) { complete.push_back(n); }});
    ASSERT_TRUE(journal.append(batch_of(1, 4)));
    ASSERT_TRUE(journal.snapshot({}));
    ASSERT_TRUE(journal.snapshot(blob_of(10, 1)));  // of the same record: the first one stays
    ASSERT_TRUE(journal.flush());
  }
  {
    Journal journal = open();
    ASSERT_TRUE(journal.snapshot(blob_of(10, 1)));
    ASSERT_TRUE(journal.flush());
  }
  EXPECT_EQ(complete, std::vector<std::uint64_t>{4});
  EXPECT_EQ(load(path_).snapshot->sequence, 4U);
}

// Segments of 100 records (times 10 to 1000, 1010 to 2000, ...), a snapshot after each.
class Segments : public JournalTest {
 protected:
  void build(Journal& journal, std::uint64_t segments) {
    for (std::uint64_t i = 0; i < segments; ++i) {
      ASSERT_TRUE(journal.append(batch_of(journal.last_sequence() + 1, 100)));
      const Bytes closing = bytes_of(std::string_view("balances"));
      ASSERT_TRUE(journal.seal({closing.begin(), closing.end()}));
      ASSERT_TRUE(journal.snapshot(blob_of(100, static_cast<int>(i))));
    }
    ASSERT_TRUE(journal.flush());
  }

  std::vector<Segment> segments() {
    auto list = Reader::open(path_).value().segments();
    EXPECT_TRUE(list.has_value()) << to_string(list.error());
    return list ? *list : std::vector<Segment>{};
  }
};

TEST_F(Segments, SealWhatCameSinceTheLastOne) {
  Journal journal = open();
  build(journal, 2);
  ASSERT_TRUE(journal.seal({}));  // nothing new: no segment
  ASSERT_TRUE(journal.append(batch_of(201, 1)));
  ASSERT_TRUE(journal.seal({}));
  ASSERT_TRUE(journal.flush());
  const std::vector<Segment> list = segments();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].first, 1U);
  EXPECT_EQ(list[0].last, 100U);
  EXPECT_EQ(list[0].last_time, Time(1'000));
  EXPECT_EQ(list[1].first, 101U);
  EXPECT_EQ(list[1].first_time, Time(1'010));
  EXPECT_EQ(list[1].closing.size(), 8U);
  EXPECT_EQ(list[2].first, 201U);
  EXPECT_EQ(list[2].last, 201U);
}

TEST_F(Segments, AlteredBalancesAreRefused) {
  {
    Journal journal = open();
    build(journal, 3);
  }
  tamper("UPDATE segment SET closing = 'balancez' WHERE number = 2");
  EXPECT_NE(read_error().find("damaged at record 101: sealed segment 2"), std::string::npos)
      << read_error();
}

TEST_F(Segments, MissingOneIsRefused) {
  {
    Journal journal = open();
    build(journal, 3);
  }
  tamper("DELETE FROM segment WHERE number = 2");
  EXPECT_NE(read_error().find("sealed segment 2"), std::string::npos) << read_error();
}

TEST_F(Segments, RetentionDropsOldOnesThatSnapshotsCover) {
  {
    Journal journal = open();
    build(journal, 4);                                  // snapshots at 300 and 400 are kept
    ASSERT_TRUE(journal.drop_raw_before(Time(2'000)));  // only segment 1 ended before
    ASSERT_TRUE(journal.flush());
    EXPECT_EQ(Reader::open(path_).value().first_sequence().value(), 101U);
    ASSERT_TRUE(journal.drop_raw_before(Time::never()));  // segment 4 is not covered by both
    ASSERT_TRUE(journal.flush());
  }
  EXPECT_EQ(read_error(), "");
  const std::vector<Segment> list = segments();
  ASSERT_EQ(list.size(), 4U);
  EXPECT_FALSE(list[2].raw);
  EXPECT_TRUE(list[3].raw);
  EXPECT_EQ(list[0].closing.size(), 8U);  // balances stay
  auto reader = Reader::open(path_).value();
  EXPECT_EQ(reader.first_sequence().value(), 301U);
  EXPECT_EQ(reader.from(300).error().code, ErrorCode::not_found);
  std::vector<Copy> copies;
  EXPECT_EQ(collect(reader.from(301), copies), "");
  EXPECT_EQ(copies.size(), 100U);
  EXPECT_EQ(copies.front().payload, text_of(301));
  // Both snapshots are still good to start from, the older one right at the edge.
  tamper("UPDATE snapshot SET checksum = randomblob(16) WHERE sequence = 400");
  EXPECT_EQ(load(path_).snapshot->sequence, 300U);
  EXPECT_EQ(open_error(), "");
}

TEST_F(Segments, RetentionWaitsForTwoSnapshots) {
  Journal journal = open();
  build(journal, 1);
  ASSERT_TRUE(journal.drop_raw_before(Time::never()));
  ASSERT_TRUE(journal.flush());
  EXPECT_EQ(read_all().size(), 100U);
}

TEST_F(Segments, ACursorOvertakenByRetentionSaysSo) {
  Journal journal = open();
  build(journal, 1);
  auto reader = Reader::open(path_).value();
  auto cursor = reader.from(50).value();
  build(journal, 3);
  ASSERT_TRUE(journal.drop_raw_before(Time::never()));
  ASSERT_TRUE(journal.flush());
  auto record = cursor.next();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::not_found);
  EXPECT_NE(record.error().message.find("dropped by retention"), std::string::npos);
}

TEST_F(Segments, DroppedWithoutASoundSnapshotIsRefused) {
  {
    Journal journal = open();
    build(journal, 3);
    ASSERT_TRUE(journal.drop_raw_before(Time::never()));
    ASSERT_TRUE(journal.flush());
  }
  tamper("UPDATE snapshot SET checksum = randomblob(16)");
  auto loaded = Reader::open(path_).value().load_snapshot();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("no sound snapshot"), std::string::npos);
}

}  // namespace
}  // namespace neap::journal
