// A journal that was altered, reordered, thinned out or cut short is refused, and the refusal
// names the first record that cannot be trusted.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "journal/testing/journal_fixture.h"

namespace neap::journal {
namespace {

namespace fs = std::filesystem;
using testing::JournalTest;

// Checkpoints the log, so that all lies in the database file.
constexpr const char* checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";

struct Damage {
  const char* name;
  const char* sql;
  int at;              // the record that the error names
  bool found_at_open;  // already the writer's check of the end finds it
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class Tampered : public JournalTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(Tampered, IsRefusedWithTheSequence) {
  fill(1'000);
  ASSERT_EQ(read_error(), "");
  tamper(GetParam().sql);
  const std::string expected = "damaged at record " + std::to_string(GetParam().at) + ":";
  EXPECT_NE(read_error().find(expected), std::string::npos) << read_error();
  if (GetParam().found_at_open) {
    EXPECT_NE(open_error().find("damaged at record"), std::string::npos) << open_error();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Tampered,
    ::testing::Values(
        Damage{"payload", "UPDATE record SET payload = 'payload 78' WHERE sequence = 77", 77,
               false},
        Damage{"time", "UPDATE record SET time_us = time_us + 1 WHERE sequence = 600", 600, false},
        Damage{"kind", "UPDATE record SET kind = 2 WHERE sequence = 5", 5, false},
        Damage{"type", "UPDATE record SET type = 6 WHERE sequence = 7", 7, false},
        Damage{"chain", "UPDATE record SET chain = randomblob(16) WHERE sequence = 9", 9, false},
        Damage{"chain_size", "UPDATE record SET chain = x'00' WHERE sequence = 9", 9, false},
        Damage{"swapped",
               "UPDATE record SET sequence = -1 WHERE sequence = 20;"
               "UPDATE record SET sequence = 20 WHERE sequence = 21;"
               "UPDATE record SET sequence = 21 WHERE sequence = -1",
               20, false},
        Damage{"deleted", "DELETE FROM record WHERE sequence = 513", 513, false},
        Damage{"deleted_first", "DELETE FROM record WHERE sequence = 1", 1, false},
        Damage{"deleted_and_closed_up",
               "DELETE FROM record WHERE sequence = 400;"
               "UPDATE record SET sequence = -sequence WHERE sequence > 400;"
               "UPDATE record SET sequence = -sequence - 1 WHERE sequence < 0;"
               "UPDATE head SET sequence = 999",
               400, true},
        Damage{"tail_deleted", "DELETE FROM record WHERE sequence > 990", 991, true},
        Damage{"all_deleted", "DELETE FROM record", 1, true},
        Damage{"genesis", "UPDATE head SET genesis = randomblob(16)", 1, false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(JournalTest, TailCutWithItsHeadIsFoundByTheLockFile) {
  fill(100);
  tamper(
      "DELETE FROM record WHERE sequence > 90;"
      "UPDATE head SET sequence = 90, time_us = 900,"
      " chain = (SELECT chain FROM record WHERE sequence = 90)");
  EXPECT_EQ(read_error(), "");  // by itself this is a sound journal of 90 records
  const std::string error = open_error();
  EXPECT_NE(error.find("damaged at record 91"), std::string::npos) << error;
  EXPECT_NE(error.find("up to 100 were durable"), std::string::npos) << error;
  // The way out that the message names.
  fs::remove(path_ + "-lock");
  EXPECT_EQ(open_error(), "");
}

TEST_F(JournalTest, AnotherJournalInItsPlaceIsFound) {
  fill(50);
  fs::rename(path_, directory_ + "/first.db");
  fs::rename(path_ + "-lock", directory_ + "/first.db-lock");
  fill(60);
  fs::rename(directory_ + "/first.db-lock", path_ + "-lock");
  EXPECT_NE(open_error().find("not the record that was reported durable"), std::string::npos)
      << open_error();
}

TEST_F(JournalTest, TornLockFileIsNoObstacle) {
  fill(5);
  fs::resize_file(path_ + "-lock", 40);
  EXPECT_EQ(open_error(), "");
}

// Copies the files of a running journal, as a machine that loses power leaves them.
void copy_live(const std::string& from, const std::string& to) {
  for (const char* suffix : {"", "-wal", "-lock"}) fs::copy_file(from + suffix, to + suffix);
}

TEST_F(JournalTest, TornLogIsRefusedOrLosesNothing) {
  const std::string crashed = directory_ + "/crashed.db";
  {
    Journal journal = open();
    for (std::uint64_t n = 1; n <= 40; ++n) {
      ASSERT_TRUE(journal.append(batch_of(n, 1)));
      ASSERT_TRUE(journal.flush());
    }
    copy_live(path_, crashed);
  }
  const auto full = fs::file_size(crashed + "-wal");
  path_ = directory_ + "/torn.db";
  for (std::uintmax_t cut = 0; cut <= full; cut += full / 13 + 1) {
    for (const char* suffix : {"", "-wal", "-lock"}) {
      fs::copy_file(crashed + suffix, path_ + suffix, fs::copy_options::overwrite_existing);
    }
    fs::remove(path_ + "-shm");
    fs::resize_file(path_ + "-wal", full - cut);
    const std::string error = open_error();
    if (cut == 0) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(read_all().size(), 40U);
    } else {
      EXPECT_NE(error.find("40 were durable"), std::string::npos) << cut << " " << error;
    }
  }
}

TEST_F(JournalTest, AlteredByteInTheLogIsRefused) {
  const std::string crashed = directory_ + "/crashed.db";
  {
    Journal journal = open();
    for (std::uint64_t n = 1; n <= 20; ++n) {
      ASSERT_TRUE(journal.append(batch_of(n, 1)));
      ASSERT_TRUE(journal.flush());
    }
    copy_live(path_, crashed);
  }
  path_ = crashed;
  std::fstream log(crashed + "-wal", std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(crashed + "-wal") / 2);
  log.seekg(middle);
  const char old = static_cast<char>(log.get());
  log.seekp(middle);
  log.put(static_cast<char>(old ^ 0x40));
  log.close();
  // SQLite ends the log at the first frame whose checksum is wrong; the lock file knows more.
  EXPECT_NE(open_error().find("20 were durable"), std::string::npos) << open_error();
}

TEST_F(JournalTest, AlteredByteInThePayloadOnDiskIsRefused) {
  fill(300);
  tamper(checkpoint);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The last: behind "payload 22" may stand a 2 by chance.
  const auto place = content.rfind("payload 222");
  ASSERT_NE(place, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(place + 8));
  file.put('3');
  file.close();
  EXPECT_NE(read_error().find("damaged at record 222:"), std::string::npos) << read_error();
}

TEST_F(JournalTest, TruncatedFileIsRefusedAtEveryLength) {
  fill(2'000);
  tamper(checkpoint);
  const auto size = fs::file_size(path_);
  for (std::uintmax_t keep = 0; keep < size; keep += size / 11 + 1) {
    const std::string cut = directory_ + "/cut.db";
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(cut + suffix);
    fs::copy_file(path_, cut, fs::copy_options::overwrite_existing);
    fs::copy_file(path_ + "-lock", cut + "-lock", fs::copy_options::overwrite_existing);
    fs::resize_file(cut, keep);
    auto journal = Journal::open({.path = cut}, {});
    std::string error = journal ? "" : to_string(journal.error());
    if (journal) {
      auto reader = Reader::open(cut);
      ASSERT_TRUE(reader);
      auto verified = reader->verify();
      if (!verified) error = to_string(verified.error());
    }
    EXPECT_NE(error, "") << "kept " << keep << " of " << size;
  }
}

TEST_F(JournalTest, RandomByteFlipsNeverGoUnnoticed) {
  fill(400);
  tamper(checkpoint);
  const std::vector<testing::Copy> good = read_all();
  const auto size = fs::file_size(path_);
  std::uint64_t random = 88172645463325252U;
  int noticed = 0;
  for (int round = 0; round < 60; ++round) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const std::string flipped = directory_ + "/flipped.db";
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(flipped + suffix);
    fs::copy_file(path_, flipped, fs::copy_options::overwrite_existing);
    std::fstream file(flipped, std::ios::in | std::ios::out | std::ios::binary);
    const auto place = static_cast<std::streamoff>(random % size);
    file.seekg(place);
    const char old = static_cast<char>(file.get());
    file.seekp(place);
    file.put(static_cast<char>(old ^ (1 << (round % 8))));
    file.close();
    auto reader = Reader::open(flipped);
    std::vector<testing::Copy> copies;
    const std::string error = reader ? collect(reader->from(1), copies) : "refused";
    noticed += error.empty() ? 0 : 1;
    if (!error.empty()) continue;
    // Unused space may change; what is read may not.
    ASSERT_EQ(copies.size(), good.size()) << "byte " << place;
    for (std::size_t i = 0; i < good.size(); ++i) {
      ASSERT_EQ(copies[i].payload, good[i].payload) << "byte " << place;
    }
  }
  EXPECT_GE(noticed, 10);  // of 60; the rest fell into unused space
}

}  // namespace
}  // namespace neap::journal
