#include "backend/local/cgroup.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/local/testing/bench_of_tasks.h"
#include "backend/local/testing/fake_cgroups.h"

namespace neap::local {
namespace {

namespace fs = std::filesystem;

CgroupLimits all_limits() {
  CgroupLimits limits;
  limits.cpu_weight = 200;
  limits.cpu_quota_milli = 1500;
  limits.memory_max_bytes = 64 << 20;
  limits.processes_max = 50;
  limits.cpus = "0";
  limits.memory_high_bytes = 48 << 20;
  limits.io_weight = 300;
  limits.io = {{"8:0", 1000, {}, {}, 50}};
  return limits;
}

class FakeTree : public ::testing::Test {
 protected:
  void file(const std::string& name, const std::string& content) const {
    tree_.file(name, content);
  }
  [[nodiscard]] std::string read(const std::string& name) const { return tree_.read(name); }
  void make_v2() const { tree_.make_v2({1}); }

  testing::FakeCgroups tree_;
  const std::string& root_ = tree_.root();
};

TEST_F(FakeTree, DetectsWhatIsMounted) {
  EXPECT_EQ(detect_cgroups(root_).version, CgroupVersion::none);
  file("unified/cgroup.procs", "");
  file("memory/cgroup.procs", "");
  EXPECT_EQ(detect_cgroups(root_).version, CgroupVersion::v1);
  file("cgroup.controllers", "hugetlb\n");
  EXPECT_EQ(detect_cgroups(root_).version, CgroupVersion::v1);
  file("cgroup.controllers", "cpu memory\n");
  EXPECT_EQ(detect_cgroups(root_).version, CgroupVersion::v2);
}

TEST_F(FakeTree, V2LimitsAreWrittenInItsOwnUnits) {  // B5
  make_v2();
  const auto created = Cgroup::create(detect_cgroups(root_), "neap/p/1", all_limits());
  EXPECT_TRUE(created.not_enforced.empty()) << created.not_enforced.front();
  EXPECT_EQ(read("neap/p/1/cpu.weight"), "200");
  EXPECT_EQ(read("neap/p/1/cpu.max"), "150000 100000");
  EXPECT_EQ(read("neap/p/1/memory.max"), "67108864");
  EXPECT_EQ(read("neap/p/1/pids.max"), "50");
  EXPECT_EQ(read("neap/p/1/cpuset.cpus"), "0");
  EXPECT_EQ(read("neap/p/1/memory.high"), "50331648");
  EXPECT_EQ(read("neap/p/1/io.weight"), "default 300");
  EXPECT_EQ(read("neap/p/1/io.max"), "8:0 rbps=1000 wbps=max riops=max wiops=50");
  for (const char* level : {"", "neap/", "neap/p/"}) {
    EXPECT_EQ(read(std::string(level) + "cgroup.subtree_control"), "+pids") << level;
  }
  EXPECT_FALSE(fs::exists(root_ + "/neap/p/1/cgroup.subtree_control"));
}

// In a plain folder, files stand for what keeps the kernel from removing a group.
TEST_F(FakeTree, B5_GroupsThatNobodyIsInGoAndOthersStay) {
  file("cgroup.controllers", "cpu memory\n");
  const auto group = [&](const std::string& name) { fs::create_directories(root_ + "/" + name); };
  const auto is_there = [&](const std::string& name) { return fs::exists(root_ + "/" + name); };
  group("neap/p-1/1");
  file("neap/p-1/2/cgroup.procs", "77");
  group("neap/p-1/3");
  group("neap/p-0");
  group("neap/p-2");
  file("neap/p-2/9/cgroup.procs", "78");
  group("neap/other");
  remove_empty_groups(detect_cgroups(root_), "neap/p-1", {"3"});
  EXPECT_FALSE(is_there("neap/p-1/1"));
  EXPECT_TRUE(is_there("neap/p-1/2")) << "somebody is in it";
  EXPECT_TRUE(is_there("neap/p-1/3")) << "it is about to be used";
  remove_empty_pools(detect_cgroups(root_), "p");
  EXPECT_FALSE(is_there("neap/p-0"));
  EXPECT_TRUE(is_there("neap/p-1"));
  EXPECT_TRUE(is_there("neap/p-2/9"));
  EXPECT_TRUE(is_there("neap/other")) << "of another pool";
  fs::remove_all(root_ + "/neap/p-1/2");
  remove_empty_groups(detect_cgroups(root_), "neap/p-1", {});
  remove_empty_pools(detect_cgroups(root_), "p-1");
  EXPECT_FALSE(is_there("neap/p-1"));
}

TEST_F(FakeTree, B5_EmptyGroupsGoFromEachHierarchyOfV1) {
  for (const char* hierarchy : {"cpu", "memory", "pids"}) {
    file(std::string(hierarchy) + "/cgroup.procs", "");
    fs::create_directories(root_ + "/" + hierarchy + "/neap/p-1/1");
  }
  remove_empty_groups(detect_cgroups(root_), "neap/p-1", {});
  remove_empty_pools(detect_cgroups(root_), "p-1");
  for (const char* hierarchy : {"cpu", "memory", "pids"}) {
    EXPECT_FALSE(fs::exists(root_ + "/" + hierarchy + "/neap/p-1")) << hierarchy;
  }
}

TEST_F(FakeTree, V1LimitsAreWrittenInItsOwnUnits) {  // B5
  tree_.make_v1({1});
  const auto created = Cgroup::create(detect_cgroups(root_), "neap/p/1", all_limits());
  ASSERT_EQ(created.not_enforced.size(), 1U);
  EXPECT_EQ(created.not_enforced.front(), "memory high: cgroup v1 has no such limit");
  EXPECT_EQ(read("cpu/neap/p/1/cpu.shares"), "2048");
  EXPECT_EQ(read("cpu/neap/p/1/cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(read("blkio/neap/p/1/blkio.throttle.read_bps_device"), "8:0 1000");
  EXPECT_EQ(read("blkio/neap/p/1/blkio.throttle.write_iops_device"), "8:0 50");
  EXPECT_EQ(read("blkio/neap/p/1/blkio.throttle.write_bps_device"), "");
  EXPECT_EQ(read("blkio/neap/p/1/blkio.bfq.weight"), "300");
  EXPECT_EQ(read("pids/neap/p/1/pids.max"), "50");
}

TEST_F(FakeTree, WhatALaterLimitLacksIsLifted) {  // B5
  make_v2();
  tree_.make_v1({1});  // beside v2, which is the one in use
  const auto v2 = Cgroup::create({CgroupVersion::v2, root_}, "neap/p/1", all_limits());
  CgroupLimits fewer;
  fewer.cpu_weight = 200;
  EXPECT_TRUE(v2.group.change(all_limits(), fewer).empty());
  EXPECT_EQ(read("neap/p/1/cpu.weight"), "200");
  EXPECT_EQ(read("neap/p/1/cpu.max"), "max 100000");
  EXPECT_EQ(read("neap/p/1/memory.max"), "max");
  EXPECT_EQ(read("neap/p/1/memory.high"), "max");
  EXPECT_EQ(read("neap/p/1/pids.max"), "max");
  EXPECT_EQ(read("neap/p/1/cpuset.cpus"), "\n");
  EXPECT_EQ(read("neap/p/1/io.weight"), "default 100");
  EXPECT_EQ(read("neap/p/1/io.max"), "8:0 rbps=max wbps=max riops=max wiops=max");
  const auto v1 = Cgroup::create({CgroupVersion::v1, root_}, "neap/p/1", all_limits());
  EXPECT_TRUE(v1.group.change(all_limits(), fewer).empty());
  EXPECT_EQ(read("cpu/neap/p/1/cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(read("memory/neap/p/1/memory.limit_in_bytes"), "-1");
  EXPECT_EQ(read("blkio/neap/p/1/blkio.throttle.read_bps_device"), "8:0 0");
  EXPECT_EQ(read("cpuset/neap/p/1/cpuset.cpus"), "0-3");
}

TEST_F(FakeTree, V2FreezesKillsAndCounts) {
  make_v2();
  const Cgroup group = Cgroup::existing(detect_cgroups(root_), "neap/p/1");
  ASSERT_TRUE(group.freeze());
  EXPECT_EQ(read("neap/p/1/cgroup.freeze"), "1");
  ASSERT_TRUE(group.thaw());
  EXPECT_EQ(read("neap/p/1/cgroup.freeze"), "0");
  group.kill();
  EXPECT_EQ(read("neap/p/1/cgroup.kill"), "1");
  EXPECT_EQ(group.oom_kills(), 2);
  EXPECT_TRUE(group.enter(123));
  EXPECT_EQ(read("neap/p/1/cgroup.procs"), "123");
  file("neap/p/1/inner/cgroup.procs", "7\n123\n");
  EXPECT_EQ(group.processes(), (std::vector<pid_t>{7, 123}));
}

TEST_F(FakeTree, V2WithoutCgroupKillFreezesAndKillsEach) {
  make_v2();
  fs::remove(root_ + "/neap/p/1/cgroup.kill");
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  file("neap/p/1/cgroup.procs", std::to_string(child) + "\n");
  Cgroup::existing(detect_cgroups(root_), "neap/p/1").kill();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(read("neap/p/1/cgroup.freeze"), "0");
}

TEST_F(FakeTree, WhatCannotBeSetIsNamedAndNothingFails) {
  make_v2();
  fs::remove(root_ + "/neap/p/1/memory.max");
  const auto created = Cgroup::create(detect_cgroups(root_), "neap/p/1", all_limits());
  ASSERT_EQ(created.not_enforced.size(), 1U);
  EXPECT_EQ(created.not_enforced[0],
            "memory max: open " + root_ + "/neap/p/1/memory.max: No such file or directory");
  const auto none = Cgroup::create({CgroupVersion::none, root_}, "neap/p/1", all_limits());
  EXPECT_TRUE(none.group.empty_handed());
  EXPECT_EQ(none.not_enforced.size(), 1U);
}

TEST_F(FakeTree, NotPermittedIsSaid) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become a user without rights";
  make_v2();
  fs::remove_all(root_ + "/neap");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  if (::fork() == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    const auto created = Cgroup::create(detect_cgroups(root_), "neap/p/1", all_limits());
    const std::string text = created.not_enforced.empty() ? "" : created.not_enforced.front();
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[256] = {};
  (void)!::read(ends[0], text, sizeof text - 1);
  ::close(ends[0]);
  ::wait(nullptr);
  EXPECT_NE(std::string(text).find("Permission denied"), std::string::npos) << text;
}

// On the real hierarchies, where this user may.
class RealGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    const CgroupRoot root = detect_cgroups();
    if (root.version == CgroupVersion::none) GTEST_SKIP() << "no cgroups are mounted";
    auto created = Cgroup::create(root, name_, {});
    if (created.group.empty_handed() || !created.not_enforced.empty()) {
      created.group.remove();
      GTEST_SKIP() << "cgroups cannot be made here: "
                   << (created.not_enforced.empty() ? "" : created.not_enforced.front());
    }
  }
  void TearDown() override { Cgroup::existing(detect_cgroups(), name_).remove(); }

  std::string name_ = "neap/test-real-" + std::to_string(::getpid());
};

TEST_F(RealGroups, LimitsAreReallySet) {  // B5
  const CgroupRoot root = detect_cgroups();
  CgroupLimits limits = all_limits();  // less what depends on the machine
  limits.memory_high_bytes.reset();
  limits.io_weight.reset();
  limits.io.clear();
  const auto created = Cgroup::create(root, name_, limits);
  EXPECT_TRUE(created.not_enforced.empty()) << created.not_enforced.front();
  const auto read = [&](const std::string& path) {
    std::stringstream out;
    out << std::ifstream(root.path + path).rdbuf();
    return out.str();
  };
  if (root.version == CgroupVersion::v1) {
    EXPECT_EQ(read("/cpu/" + name_ + "/cpu.shares"), "2048\n");
    EXPECT_EQ(read("/cpu/" + name_ + "/cpu.cfs_quota_us"), "150000\n");
    EXPECT_EQ(read("/memory/" + name_ + "/memory.limit_in_bytes"), "67108864\n");
    EXPECT_EQ(read("/cpuset/" + name_ + "/cpuset.cpus"), "0\n");
  } else {
    EXPECT_EQ(read("/" + name_ + "/memory.max"), "67108864\n");
    EXPECT_EQ(read("/" + name_ + "/cpu.max"), "150000 100000\n");
  }
}

TEST_F(RealGroups, AForkingCrowdDiesAsAWhole) {
  const Cgroup group = Cgroup::existing(detect_cgroups(), name_);
  const pid_t first = ::fork();
  if (first == 0) {
    ::setsid();
    if (!group.enter(0)) ::_exit(1);
    for (int i = 0; i < 200; ++i) {
      if (::fork() == 0) {
        for (;;) {
          const pid_t next = ::fork();
          if (next == 0) continue;
          ::waitpid(next, nullptr, 0);
        }
      }
      ::usleep(500);
    }
    ::_exit(0);
  }
  testing::TaskBench::wait_until([&] { return group.processes().size() > 20; });
  testing::TaskBench::wait_until([&] {
    group.kill();
    (void)::waitpid(first, nullptr, WNOHANG);
    return group.processes().empty();
  });
}

TEST_F(RealGroups, MemoryBeyondTheLimitIsAnOutOfMemoryExit) {
  testing::TaskBench bench;
  auto task = bench.python(1, "x = bytearray(200 << 20)\nprint('survived')\n");
  bench.give_group(task);
  task.cgroup->limits.memory_max_bytes = 64 << 20;
  bench.start(task);
  const Exited exit = bench.wait_for<Exited>(1);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_GE(exit.oom_kills, 1);
  EXPECT_EQ(exit.detail, "out of memory");
  EXPECT_TRUE(bench.wait_for<Started>(1).not_enforced.empty());
}

TEST_F(RealGroups, GroupOfAnEndedTaskIsRemoved) {
  testing::TaskBench bench;
  auto task = bench.shell(1, "exit 0");
  bench.give_group(task);
  bench.start(task);
  bench.wait_for<Exited>(1);
  EXPECT_TRUE(Cgroup::existing(detect_cgroups(), task.cgroup->name).empty_handed());
}

}  // namespace
}  // namespace neap::local
