#include "backend/local/task_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

namespace neap::local {
namespace {

class TaskLogTest : public ::testing::Test {
 protected:
  TaskLogTest() {
    std::string name = "/tmp/neap-log-XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~TaskLogTest() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory_)) {
      ++count;
    }
    return count;
  }

  std::string directory_;
};

TEST_F(TaskLogTest, NoLogYetIsAnEmptyLog) {
  const auto part = read_log(directory_, 0, 100);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, "");
  EXPECT_EQ(part->end, 0);
}

TEST_F(TaskLogTest, RotatesBetweenLinesKeepsTheNewestAndCountsOn) {
  TaskLog log(directory_, {1000, 3});
  std::string all;
  for (int i = 0; i < 500; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.write(line);
    all += line;
  }
  EXPECT_EQ(files(), 3U);
  const auto part = read_log(directory_, 0, 1 << 20);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->end, static_cast<std::int64_t>(all.size()));
  EXPECT_GT(part->offset, 0);  // what was rotated away is told, not hidden
  EXPECT_EQ(part->bytes, all.substr(static_cast<std::size_t>(part->offset)));
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    EXPECT_LE(file.file_size(), 1000U);
  }
}

// B5: a chatterbox fills the disk up to what the journal needs, and no further.
TEST_F(TaskLogTest, LeavesSpaceForTheJournal) {
  TaskLog log(directory_, {1000, 3, std::numeric_limits<std::int64_t>::max() / 2});
  log.write("nothing of this\n");
  EXPECT_EQ(log.lost_bytes(), 16);
  EXPECT_EQ(read_log(directory_, 0, 1 << 20)->bytes, "");
  TaskLog roomy(directory_, {1000, 3, 0});
  roomy.write("all of this\n");
  EXPECT_EQ(roomy.lost_bytes(), 0);
}

TEST_F(TaskLogTest, OneHugeLineIsCutIntoFiles) {
  TaskLog log(directory_, {1000, 10});
  const std::string line(3500, 'x');
  log.write(line);
  EXPECT_EQ(files(), 4U);
  EXPECT_EQ(read_log(directory_, 0, 1 << 20)->bytes, line);
}

TEST_F(TaskLogTest, FollowsByOffsetAcrossRotations) {
  TaskLog log(directory_, {100, 100});
  std::string seen;
  for (int i = 0; i < 200; ++i) {
    log.write("entry " + std::to_string(i) + "\n");
    if (i % 7 != 0) continue;
    const auto part = read_log(directory_, static_cast<std::int64_t>(seen.size()), 37);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->offset, static_cast<std::int64_t>(seen.size()));
    seen += part->bytes;
  }
  EXPECT_TRUE(read_log(directory_, 0, 1 << 20)->bytes.starts_with(seen));
}

TEST_F(TaskLogTest, TailGivesLines) {
  TaskLog log(directory_, {100, 100});
  for (int i = 0; i < 50; ++i) log.write("entry " + std::to_string(i) + "\n");
  const auto from = [&](std::int64_t lines) {
    return read_log(directory_, *log_tail(directory_, lines), 1 << 20)->bytes;
  };
  EXPECT_EQ(from(2), "entry 48\nentry 49\n");
  EXPECT_EQ(from(0), "");
  EXPECT_EQ(from(1000).substr(0, 8), "entry 0\n");
}

TEST_F(TaskLogTest, WhatTheDiskRefusesIsCounted) {
  TaskLog log(directory_ + "/gone", {1000, 3});
  log.write("12345");
  EXPECT_EQ(log.lost_bytes(), 5);
  std::filesystem::create_directory(directory_ + "/gone");
  log.write("after\n");
  EXPECT_EQ(read_log(directory_ + "/gone", 0, 1000)->bytes,
            "\n[neap: 5 bytes of output lost]\nafter\n");
}

}  // namespace
}  // namespace neap::local
