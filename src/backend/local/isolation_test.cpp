#include "backend/local/isolation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backend/local/durable_file.h"
#include "backend/local/testing/fake_cgroups.h"

namespace neap::local {
namespace {

constexpr AllocationId one{1};

class Isolated : public ::testing::Test {
 protected:
  Isolated() {
    tree_.make_v2({1, 2});
    for (const std::uint64_t id : {1, 2}) {
      std::filesystem::create_directories(directory(id));
      SupervisedTask task;
      task.allocation = AllocationId(id);
      task.argv = {"/bin/true"};
      task.cgroup = SupervisedGroup{tree_.root(), "neap/p/" + std::to_string(id), {}, 0, {}};
      task.cgroup->limits.cpu_weight = 100;
      isolation_.add(directory(id), task);
      isolation_.started(AllocationId(id));
    }
  }
  [[nodiscard]] std::string directory(std::uint64_t id) const {
    return tree_.root() + "/tasks/" + std::to_string(id);
  }
  [[nodiscard]] CgroupLimits limits() const { return *isolation_.limits_of(one); }

  testing::FakeCgroups tree_;
  Isolation isolation_{tree_.root()};
};

TEST_F(Isolated, AQuotaGoesUpAndDownAndAway) {  // B5, B7
  CgroupLimits wanted = limits();
  wanted.cpu_quota_milli = 500;
  ASSERT_TRUE(isolation_.change(one, wanted));
  EXPECT_EQ(tree_.read("neap/p/1/cpu.max"), "50000 100000");
  EXPECT_EQ(tree_.read("neap/p/2/cpu.max"), "");
  wanted.cpu_quota_milli = 1'000;
  ASSERT_TRUE(isolation_.change(one, wanted));
  EXPECT_EQ(tree_.read("neap/p/1/cpu.max"), "100000 100000");
  wanted.cpu_quota_milli.reset();
  ASSERT_TRUE(isolation_.change(one, wanted));
  EXPECT_EQ(tree_.read("neap/p/1/cpu.max"), "max 100000");
  EXPECT_EQ(limits(), wanted);
}

TEST_F(Isolated, TheNextDaemonFindsWhatWasChanged) {  // G3
  CgroupLimits wanted = limits();
  wanted.cpu_quota_milli = 700;
  wanted.io = {{"8:0", {}, 1'000'000, {}, {}}};
  ASSERT_TRUE(isolation_.change(one, wanted));
  const auto text = read_bounded(spec_path(directory(1)), spec_size_limit);
  ASSERT_TRUE(text);
  const auto task = parse_spec(*text);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->cgroup->limits, wanted);
}

TEST_F(Isolated, WhatTheKernelRefusesLeavesTheEarlierLimits) {
  CgroupLimits wanted = limits();
  wanted.cpu_weight = 300;
  wanted.io_weight = 50;
  std::filesystem::remove(tree_.root() + "/neap/p/1/io.weight");
  const auto changed = isolation_.change(one, wanted);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::unavailable);
  EXPECT_NE(changed.error().message.find("io weight"), std::string::npos);
  EXPECT_EQ(limits().cpu_weight, 100);
  EXPECT_EQ(tree_.read("neap/p/1/cpu.weight"), "100");
}

TEST_F(Isolated, AMethodThatFailedItsCheckIsNotOffered) {  // B1
  isolation_.set_checks({{Method::cpu_quota, {MethodState::failed, "got 90 % of a core of 20 %"}}});
  CgroupLimits wanted = limits();
  EXPECT_TRUE(isolation_.offers(wanted));
  wanted.cpu_quota_milli = 500;
  const auto changed = isolation_.change(one, wanted);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::unavailable);
  EXPECT_EQ(changed.error().message,
            "host limit 'cpu quota' is not offered here: got 90 % of a core of 20 %");
  EXPECT_EQ(tree_.read("neap/p/1/cpu.max"), "");
}

TEST_F(Isolated, WhatItHasAlreadyIsNotAskedAgain) {
  isolation_.set_checks(
      {{Method::cpu_weight, {MethodState::failed, "two processes got the same"}}});
  CgroupLimits wanted = limits();  // with a weight that was given before it was tried
  wanted.processes_max = 9;
  EXPECT_TRUE(isolation_.change(one, wanted));
  wanted.cpu_weight = 200;
  EXPECT_FALSE(isolation_.change(one, wanted));
}

TEST_F(Isolated, MemoryIsNeverTakenFromUnderATask) {
  tree_.file("neap/p/1/memory.current", "4096000\n");
  CgroupLimits wanted = limits();
  wanted.memory_max_bytes = 4'095'999;
  const auto changed = isolation_.change(one, wanted);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::conflict);
  EXPECT_EQ(tree_.read("neap/p/1/memory.max"), "");
  wanted.memory_max_bytes = 4'096'000;
  EXPECT_TRUE(isolation_.change(one, wanted));
}

TEST_F(Isolated, WhoStartsOrIsGoneKeepsItsLimits) {
  SupervisedTask third;
  third.allocation = AllocationId(3);
  third.cgroup = SupervisedGroup{tree_.root(), "neap/p/3", {}, 0, {}};
  isolation_.add(directory(3), third);
  EXPECT_EQ(isolation_.change(AllocationId(3), {}).error().code, ErrorCode::conflict);
  isolation_.ended(one);
  EXPECT_EQ(isolation_.change(one, {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(isolation_.limits_of(one).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace neap::local
