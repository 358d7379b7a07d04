#include "daemon/state_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace neap::daemon {
namespace {

class StateDir : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/neap-state-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string with_mode(mode_t mode) {
    const std::string path = folder_ + "/there";
    std::filesystem::create_directory(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777U;
  }
  static std::string refusal(const std::string& path) {
    const auto done = prepare_state_dir(path);
    return done ? "accepted" : done.error().message;
  }

  std::string folder_;
};

TEST_F(StateDir, ANewOneLetsOthersPassAndSeeNothing) {
  const std::string path = folder_ + "/a/b";
  ASSERT_TRUE(prepare_state_dir(path));
  EXPECT_EQ(mode_of(path), 0711U);
  ASSERT_TRUE(prepare_state_dir(path));  // at every start
}

// G6: a slip such as `--state-dir /tmp` breaks neither the pool nor the machine.
TEST_F(StateDir, OneThatIsThereIsNeverChanged) {
  for (const mode_t mode : {01777U, 0775U, 0757U}) {
    const std::string path = with_mode(mode);
    EXPECT_NE(refusal(path).find("others may write"), std::string::npos);
    EXPECT_EQ(mode_of(path), mode);
  }
  const std::string path = with_mode(0755);
  EXPECT_EQ(refusal(path), "accepted");
  EXPECT_EQ(mode_of(path), 0755U);
}

TEST_F(StateDir, RefusedWithItsReason) {
  EXPECT_NE(refusal(folder_ + "/" + std::string(64, 'x')).find("64 bytes"), std::string::npos);
  EXPECT_NE(refusal("/dev/null").find("no folder"), std::string::npos);
  EXPECT_NE(refusal("/proc/1/x").find("No such file"), std::string::npos);
  if (::geteuid() == 0) {
    EXPECT_NE(refusal(with_mode(0700)).find("o+x"), std::string::npos);
    const std::string theirs = with_mode(0755);
    ASSERT_EQ(::chown(theirs.c_str(), 1, 1), 0);
    EXPECT_NE(refusal(theirs).find("belongs to user 1"), std::string::npos);
  } else {
    EXPECT_NE(refusal("/").find("belongs to user 0"), std::string::npos);
    EXPECT_EQ(refusal(with_mode(0700)), "accepted");
  }
}

}  // namespace
}  // namespace neap::daemon
