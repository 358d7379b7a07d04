// E2: every request once, whoever reads and whenever it is killed.
#include "gateway/haproxy/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace neap::gateway {
namespace {

std::string line_of(int number) {
  return "R2 " + std::to_string(number) + " chat a1 200 -- 0 9 1 120 4096 0 high red m r" +
         std::to_string(number) + "\n";
}

class RecordSpoolTest : public ::testing::Test {
 protected:
  RecordSpoolTest() {
    std::array<char, 32> pattern{"/tmp/neap-spool-XXXXXX"};
    folder_ = mkdtemp(pattern.data());
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    out_.reset(ends[0]);
    in_.reset(ends[1]);
  }
  ~RecordSpoolTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) {
    ASSERT_EQ(::write(in_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] RecordSpool open(SpoolLimits limits = {}) const {
    auto spool = RecordSpool::open(folder_ + "/requests", limits);
    EXPECT_TRUE(spool) << to_string(spool.error());
    return std::move(*spool);
  }
  // Numbers as counted, which are those that were written where none is lost or told twice.
  void expect_read(RecordSpool& spool, std::uint64_t from, std::uint64_t until) {
    std::uint64_t next = from;
    spool.read([&](std::uint64_t number, const RequestRecord& record) {
      EXPECT_EQ(number, next);
      EXPECT_EQ(record.ended, Time(static_cast<std::int64_t>(next)));
      ++next;
    });
    EXPECT_EQ(next, until);
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t all = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/requests")) {
      all += entry.file_size();
    }
    return all;
  }

  std::string folder_;
  posix::Fd out_;
  posix::Fd in_;
};

TEST_F(RecordSpoolTest, E2_ReadOnceAsTheyCome) {
  RecordSpool spool = open();
  for (int i = 0; i < 5; ++i) write(line_of(i));
  write(line_of(5).substr(0, 12));
  ASSERT_TRUE(spool.take(out_.get()));
  expect_read(spool, 0, 5);
  expect_read(spool, 5, 5);
  write(line_of(5).substr(12) + "Proxy chat stopped.\n" + line_of(6));
  ASSERT_TRUE(spool.take(out_.get()));
  expect_read(spool, 5, 7);
  EXPECT_EQ(spool.next_number(), 7U);
}

// Killed after taking and before reading, after reading, and with records still in the pipe.
TEST_F(RecordSpoolTest, E2_TheNextReaderMissesNone) {
  {
    RecordSpool spool = open();
    for (int i = 0; i < 10; ++i) write(line_of(i));
    ASSERT_TRUE(spool.take(out_.get()));
  }
  for (int i = 10; i < 20; ++i) write(line_of(i));
  RecordSpool spool = open();
  expect_read(spool, 0, 10);
  ASSERT_TRUE(spool.take(out_.get()));
  expect_read(spool, 10, 20);
  RecordSpool again = open();
  expect_read(again, 0, 20);
}

TEST_F(RecordSpoolTest, E2_BoundedAndCountedOverFiles) {
  const SpoolLimits limits{.file_bytes = 1000, .all_bytes = 5000};
  std::uint64_t written = 0;
  {
    RecordSpool spool = open(limits);
    for (; written < 500; ++written) {
      // Cut in the middle, so that files begin with half a line too.
      const std::string line = line_of(static_cast<int>(written));
      const std::size_t half = written % line.size();
      write(line.substr(0, half));
      ASSERT_TRUE(spool.take(out_.get()));
      expect_read(spool, written, written);
      write(line.substr(half));
      ASSERT_TRUE(spool.take(out_.get()));
      expect_read(spool, written, written + 1);
      ASSERT_LE(bytes(), limits.all_bytes);
    }
  }
  RecordSpool spool = open(limits);
  std::uint64_t first = UINT64_MAX;
  std::uint64_t count = 0;
  spool.read([&](std::uint64_t number, const RequestRecord& record) {
    if (first == UINT64_MAX) first = number;
    EXPECT_EQ(number, first + count++);
    EXPECT_EQ(record.ended, Time(static_cast<std::int64_t>(number)));
  });
  EXPECT_EQ(first + count, written);  // numbered on over what was dropped
  EXPECT_GT(first, 300U);
  EXPECT_GT(count, 40U);
}

TEST_F(RecordSpoolTest, OtherFilesAreLeftAlone) {
  std::filesystem::create_directory(folder_ + "/requests");
  std::ofstream(folder_ + "/requests/notes.log") << "mine\n";
  std::ofstream(folder_ + "/requests/12.txt") << "mine\n";
  RecordSpool spool = open();
  write(line_of(0));
  ASSERT_TRUE(spool.take(out_.get()));
  expect_read(spool, 0, 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/requests/12.txt"));
  EXPECT_FALSE(RecordSpool::open("/proc/nowhere", {}));
  EXPECT_FALSE(RecordSpool::open(folder_, {.file_bytes = 10, .all_bytes = 5}));
}

TEST_F(RecordSpoolTest, E2_WhatWasHandedOn) {
  const std::string path = folder_ + "/handed";
  EXPECT_FALSE(read_handed_on(path).covers(0, Time(0)));
  ASSERT_TRUE(write_handed_on(path, {7, Time(100)}));
  const HandedOn handed = read_handed_on(path);
  EXPECT_TRUE(handed.covers(6, Time(99)));
  EXPECT_FALSE(handed.covers(6, Time(100)));  // its slice was still open
  EXPECT_FALSE(handed.covers(7, Time(99)));   // came after
  std::ofstream(path) << "half";
  EXPECT_FALSE(read_handed_on(path).covers(6, Time(99)));
}

}  // namespace
}  // namespace neap::gateway
