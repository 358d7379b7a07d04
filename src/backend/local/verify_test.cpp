#include "backend/local/verify.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "backend/local/block_device.h"
#include "backend/local/durable_file.h"
#include "backend/local/probe.h"
#include "backend/local/testing/fake_cgroups.h"

namespace neap::local {
namespace {

const auto always = [] { return true; };

class Verify : public ::testing::Test {
 protected:
  Verify() { place_.folder = ::testing::TempDir(); }
  // Held, unless this machine says why it cannot be.
  void expect_held(Method method) {
    const CgroupRoot root = detect_cgroups(place_.cgroup_root);
    if (::geteuid() != 0 || root.version == CgroupVersion::none) {
      GTEST_SKIP() << "needs root and control groups";
    }
    const MethodCheck check = verify_methods(place_, {method}, always)[method];
    const bool missing = check.evidence.find("No such file") != std::string::npos ||
                         check.evidence.find("no group of") != std::string::npos ||
                         check.evidence.find("one processor") != std::string::npos ||
                         check.evidence.find("no disk") != std::string::npos;
    if (missing) GTEST_SKIP() << check.evidence;
    EXPECT_EQ(check.state, MethodState::held) << check.evidence;
  }

  VerifyPlace place_;
};

TEST_F(Verify, CpuWeightHolds) { expect_held(Method::cpu_weight); }       // B1
TEST_F(Verify, CpuQuotaHolds) { expect_held(Method::cpu_quota); }         // B1
TEST_F(Verify, CpuSetHolds) { expect_held(Method::cpu_set); }             // B1
TEST_F(Verify, MemoryMaxHolds) { expect_held(Method::memory_max); }       // B1
TEST_F(Verify, ProcessesHold) { expect_held(Method::processes); }         // B1
TEST_F(Verify, IoBandwidthHolds) { expect_held(Method::io_bandwidth); }   // B1
TEST_F(Verify, IoOperationsHold) { expect_held(Method::io_operations); }  // B1

TEST_F(Verify, NetworkHolds) {  // B1; in a network of the test's own
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  MethodCheck check;
  bool own = false;
  std::thread([&] {
    own = ::unshare(CLONE_NEWNET) == 0;
    if (!own) return;
    place_.interfaces = {"lo"};
    check = verify_methods(place_, {Method::network}, always)[Method::network];
  }).join();
  if (!own) GTEST_SKIP() << "no network namespaces here";
  if (check.evidence.find("tc cannot be run") != std::string::npos ||
      check.evidence.find("a program that marks") != std::string::npos) {
    GTEST_SKIP() << check.evidence;
  }
  EXPECT_EQ(check.state, MethodState::held) << check.evidence;
}

// Hierarchies that take every limit and hold none: the checks must notice.
TEST_F(Verify, LimitsThatAreOnlyWrittenDownAreNoticed) {  // B1
  const testing::FakeCgroups tree;
  tree.make_v1({});
  place_.cgroup_root = tree.root();
  const std::string group = "neap/check-" + std::to_string(::getpid()) + "-";
  for (const char* controller : {"cpu", "memory", "pids", "cpuset", "freezer", "blkio"}) {
    for (const char* name :
         {"quota", "heavy", "light", "memory", "processes", "bandwidth", "operations"}) {
      const std::string folder = std::string(controller) + "/" + group + name + "/";
      tree.file(folder + "cgroup.procs", "");
      for (const char* file :
           {"cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us", "memory.limit_in_bytes",
            "pids.max", "blkio.throttle.write_bps_device", "blkio.throttle.read_iops_device"}) {
        if (std::string(file).starts_with(controller)) tree.file(folder + file, "");
      }
    }
  }
  const std::vector<Method> methods = {Method::cpu_weight,   Method::cpu_quota,
                                       Method::memory_max,   Method::processes,
                                       Method::io_bandwidth, Method::io_operations};
  for (const auto& [method, check] : verify_methods(place_, methods, always)) {
    EXPECT_EQ(check.state, MethodState::failed) << name_of(method) << ": " << check.evidence;
    // By what was measured, and not for lack of a file.
    const bool no_disk = check.evidence.find("no disk") != std::string::npos;
    EXPECT_TRUE(no_disk || check.evidence.find("No such file") == std::string::npos)
        << check.evidence;
  }
}

std::int64_t is_open(const void* file) {
  return ::fcntl(*static_cast<const int*>(file), F_GETFD) >= 0 ? 1 : 0;
}

// G3: the journal's lock is such a file; a killed daemon's probe must not hold it.
TEST(Probe, HoldsNoOpenFileOfItsParentButTheOneItNeeds) {
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fd = file.get();
  EXPECT_EQ(Probe(nullptr, is_open, &fd).wait(seconds(10)).result, 0);
  EXPECT_EQ(Probe(nullptr, is_open, &fd, fd).wait(seconds(10)).result, 1);
}

TEST_F(Verify, NothingMountedIsSaid) {
  const testing::FakeCgroups tree;
  place_.cgroup_root = tree.root();
  const auto checks = verify_methods(place_, {Method::cpu_quota}, always);
  EXPECT_EQ(checks.at(Method::cpu_quota).evidence,
            "no control groups are mounted at " + tree.root());
}

TEST_F(Verify, ResultsAreKeptUntilTheirSubjectChanges) {
  const MethodChecks checks = {{Method::cpu_quota, {MethodState::held, "a \"b\""}},
                               {Method::io_weight, {MethodState::failed, "none here"}}};
  const std::string text = checks_text("this boot", checks);
  const auto back = parse_checks(text, "this boot");
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2U);
  EXPECT_EQ(back->at(Method::cpu_quota).state, MethodState::held);
  EXPECT_EQ(back->at(Method::cpu_quota).evidence, "a \"b\"");
  EXPECT_EQ(back->at(Method::io_weight).state, MethodState::failed);
  EXPECT_FALSE(parse_checks(text, "another boot"));
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(parse_checks(text.substr(0, size), "this boot")) << size;
  }
}

TEST_F(Verify, WhatHeldIsNotTriedAgainAndWhatFailedIs) {
  const testing::FakeCgroups tree;  // nothing is mounted there: whatever is tried fails
  place_.cgroup_root = tree.root();
  const std::string file = tree.root() + "/kept.json";
  MethodChecks before = {{Method::cpu_quota, {MethodState::held, "as measured"}},
                         {Method::memory_max, {MethodState::failed, "too busy"}}};
  ASSERT_TRUE(write_durably(file, checks_text(subject_of(place_), before), 0644));
  const MethodChecks after = verify_kept(place_, file, always);
  EXPECT_EQ(after.at(Method::cpu_quota).evidence, "as measured");
  EXPECT_EQ(after.at(Method::memory_max).evidence,
            "no control groups are mounted at " + tree.root());
  EXPECT_EQ(after.size(), std::size(all_methods));
  const auto text = read_bounded(file, kept_checks_limit);
  ASSERT_TRUE(text);
  EXPECT_EQ(parse_checks(*text, subject_of(place_))->size(), after.size());
}

// A daemon that was killed while it tried something may have left its group in one hierarchy alone.
TEST_F(Verify, GroupsThatAKilledDaemonLeftAreRemovedWhereverTheyAre) {
  const testing::FakeCgroups tree;
  tree.make_v1({});
  place_.cgroup_root = tree.root();
  const std::filesystem::path left = tree.root() + "/blkio/neap/check-999999999-high";
  const std::filesystem::path mine =
      tree.root() + "/blkio/neap/check-" + std::to_string(::getpid()) + "-high";
  std::filesystem::create_directories(left);
  std::filesystem::create_directories(mine);
  (void)verify_kept(place_, tree.root() + "/kept.json", [] { return false; });
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(mine));
}

}  // namespace
}  // namespace neap::local
