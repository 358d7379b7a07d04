// What `neap describe TASK` shows of limits of the host: B5.
#include "daemon/host_limit_views.h"

#include <gtest/gtest.h>

namespace neap::daemon {
namespace {

std::string attributes_text(const std::vector<api::Attribute>& attributes) {
  std::string text;
  for (const api::Attribute& one : attributes) text += one.name + "=" + one.value + "\n";
  return text;
}

TEST(HostLimitViews, B5_WhatIsAskedIsShownAsTheFileHasIt) {
  EXPECT_EQ(attributes_text(host_limits_asked(
                R"({"command": ["x"], "cpu_milli": 1500, "host_memory_mib": 4096,
                    "host": {"cpu_weight": 200, "cpu_quota_milli": 6000, "cpus": "near",
                             "memory_max_mib": 8192, "processes": 512,
                             "network_bytes": 209715200,
                             "io": [{"path": "/scratch", "write_bytes": 104857600,
                                     "write_operations": 2000}],
                             "paths": ["/data", "/models"]}})")),
            "cpu=1.5\nhost_memory=4096MiB\ncpu_weight=200\ncpu_quota=6\ncpus=near\n"
            "memory_max=8192MiB\nprocesses=512\nnetwork=200MiB/s\n"
            "io /scratch=write 100MiB/s, write_iops 2000/s\npaths=/data, /models\n");
  EXPECT_EQ(attributes_text(host_limits_asked(R"({"command": ["x"]})")), "");
  EXPECT_EQ(attributes_text(host_limits_asked("no JSON")), "");
}

TEST(HostLimitViews, B5_WhatIsEnforcedAndWhatIsNotAreTold) {
  local::HostLimits usual;
  usual.limits.memory_high_bytes = 1 << 30;
  local::CgroupLimits limits;
  limits.cpu_weight = 100;
  limits.cpu_quota_milli = 2500;
  limits.processes_max = 50;
  limits.io = {{"8:0", {}, 1 << 20, {}, {}}};
  local::MethodChecks checks;
  checks[local::Method::io_weight] = {local::MethodState::failed, "the disk knows no weights"};
  api::HostLimitsView view;
  view_host_limits({usual, limits, checks, {"processes max: Permission denied"}}, view);
  EXPECT_EQ(attributes_text(view.enforced),
            "cpu weight=100\ncpu quota=2.5 processors\nio bandwidth=write 1MiB/s of disk 8:0\n");
  EXPECT_EQ(attributes_text(view.not_enforced),
            "memory high=not to be had here\nio weight=the disk knows no weights\n"
            "processes max=Permission denied\n");
}

}  // namespace
}  // namespace neap::daemon
