#include "backend/local/watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace neap::local {
namespace {

namespace fs = std::filesystem;

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    std::string name = "/tmp/neap-watch-XXXXXX";
    root_ = ::mkdtemp(name.data());
    work_ = root_ + "/work";
    fs::create_directories(work_ + "/out");
  }
  ~WatchTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(work_ + "/" + name).parent_path());
    std::ofstream(work_ + "/" + name) << content;
  }
  [[nodiscard]] CheckpointWatch open(const std::string& pattern = "out/checkpoint-*") const {
    auto watch = CheckpointWatch::open(work_, pattern, seconds(5));
    if (!watch) throw std::runtime_error(watch.error().message);
    return std::move(*watch);
  }
  // Names and steps found, as "checkpoint-7:7 " words.
  static std::string found(CheckpointWatch& watch, std::int64_t second,
                           WatchPass pass = WatchPass::settling) {
    std::string out;
    for (const auto& one : watch.scan(Time(second * 1'000'000), pass)) {
      out += fs::path(one.path).filename().string() + ":" + std::to_string(one.step) + " ";
    }
    return out;
  }

  std::string root_;
  std::string work_;
};

TEST_F(WatchTest, CountsOnceUnchangedForTheSettlingTime) {
  auto watch = open();
  write("out/checkpoint-7/model.bin", "abc");
  EXPECT_EQ(found(watch, 10), "");
  EXPECT_EQ(found(watch, 14), "");
  write("out/checkpoint-7/optimizer.bin", "still writing");
  EXPECT_EQ(found(watch, 16), "");
  EXPECT_EQ(found(watch, 20), "");
  EXPECT_EQ(found(watch, 21), "checkpoint-7:7 ");
  EXPECT_EQ(found(watch, 30), "");  // once
}

TEST_F(WatchTest, WhatWasThereBeforeIsOldUntilItChanges) {
  write("out/checkpoint-1.pt", "old");
  auto watch = open();
  EXPECT_EQ(found(watch, 100), "");
  write("out/checkpoint-1.pt", "written again");
  EXPECT_EQ(found(watch, 101), "");
  EXPECT_EQ(found(watch, 107), "checkpoint-1.pt:1 ");
}

TEST_F(WatchTest, FinalPassDoesNotWaitAndGivesTheOldestFirst) {
  auto watch = open();
  write("out/checkpoint-9", "a");
  write("out/checkpoint-10", "b");
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (work_ + "/out/checkpoint-9").c_str(), times, 0), 0);
  EXPECT_EQ(found(watch, 1, WatchPass::final), "checkpoint-9:9 checkpoint-10:10 ");
}

TEST_F(WatchTest, TellsBytesAndTheNewestTime) {
  auto watch = open();
  write("out/checkpoint-3/a", "12345");
  write("out/checkpoint-3/b/c", "123");
  const auto all = watch.scan(Time(0), WatchPass::final);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].bytes, 8);
  EXPECT_EQ(all[0].path, work_ + "/out/checkpoint-3");
  EXPECT_GT(all[0].written.us, 1'000'000'000'000'000);
}

TEST_F(WatchTest, LinksLeadNowhereOutside) {
  fs::create_directories(root_ + "/outside/checkpoint-1");
  std::ofstream(root_ + "/outside/checkpoint-1/secret") << "s";
  fs::create_directory_symlink(root_ + "/outside", work_ + "/linked");
  fs::create_directory_symlink(root_ + "/outside/checkpoint-1", work_ + "/out/checkpoint-2");
  fs::create_symlink("/etc/passwd", work_ + "/out/checkpoint-3");
  write("out/checkpoint-4/real", "12");
  fs::create_symlink("/etc/passwd", work_ + "/out/checkpoint-4/passwd");
  auto direct = open("out/checkpoint-*");
  auto through = open("linked/checkpoint-*");
  fs::last_write_time(work_ + "/out/checkpoint-4/real", fs::file_time_type::clock::now());
  write("out/checkpoint-4/real", "123");
  const auto all = direct.scan(Time(0), WatchPass::final);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].bytes, 3);  // the link's target does not count
  EXPECT_EQ(found(through, 1, WatchPass::final), "");
}

TEST_F(WatchTest, LinksInsideTheDirectoryAreFollowed) {
  fs::create_directories(work_ + "/scratch");
  fs::create_directory_symlink("scratch", work_ + "/ck");
  auto watch = open("ck/*.pt");
  write("scratch/step_500.pt", "x");
  EXPECT_EQ(found(watch, 1, WatchPass::final), "step_500.pt:500 ");
}

TEST_F(WatchTest, WhatIsNoFileIsPassedOver) {
  auto watch = open();
  write("out/checkpoint-5/real", "12");
  ASSERT_EQ(::mkfifo((work_ + "/out/checkpoint-5/pipe").c_str(), 0600), 0);
  EXPECT_EQ(found(watch, 1, WatchPass::final), "checkpoint-5:5 ");  // and does not hang
}

TEST_F(WatchTest, RefusesPatternsThatLeadOut) {
  for (const char* pattern : {"", "/abs/*", "../x", "a/../../x", "a/b/c/d/e/f/g/h/i", "."}) {
    const auto watch = CheckpointWatch::open(work_, pattern, seconds(5));
    ASSERT_FALSE(watch) << pattern;
    EXPECT_NE(watch.error().message.find("checkpoint.watch"), std::string::npos);
  }
}

TEST_F(WatchTest, RemovedCheckpointsAreForgotten) {
  auto watch = open();
  write("out/checkpoint-1", "a");
  EXPECT_EQ(found(watch, 1, WatchPass::final), "checkpoint-1:1 ");
  fs::remove(work_ + "/out/checkpoint-1");
  EXPECT_EQ(found(watch, 2, WatchPass::final), "");
  write("out/checkpoint-1", "a");
  EXPECT_EQ(found(watch, 3, WatchPass::final), "checkpoint-1:1 ");
}

}  // namespace
}  // namespace neap::local
