#include "backend/local/testing/fake_cgroups.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace neap::local::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* files_of_v2[] = {"cpu.weight",  "cpu.max",     "memory.max",  "memory.high",
                                       "pids.max",    "io.weight",   "io.max",      "cgroup.freeze",
                                       "cpuset.cpus", "cgroup.kill", "cgroup.procs"};

}  // namespace

FakeCgroups::FakeCgroups() {
  std::string name = "/tmp/neap-cgroup-XXXXXX";
  root_ = ::mkdtemp(name.data());
  fs::permissions(root_, fs::perms(0755));
}

FakeCgroups::~FakeCgroups() { fs::remove_all(root_); }

void FakeCgroups::file(const std::string& name, const std::string& content) const {
  fs::create_directories(fs::path(root_ + "/" + name).parent_path());
  std::ofstream(root_ + "/" + name) << content;
}

std::string FakeCgroups::read(const std::string& name) const {
  std::stringstream out;
  out << std::ifstream(root_ + "/" + name).rdbuf();
  return out.str();
}

void FakeCgroups::make_v2(std::initializer_list<std::uint64_t> ids) const {
  file("cgroup.controllers", "cpuset cpu io memory pids\n");
  for (const char* level : {"", "neap/", "neap/p/"}) {
    file(std::string(level) + "cgroup.subtree_control", "");
  }
  for (const std::uint64_t id : ids) {
    const std::string group = "neap/p/" + std::to_string(id) + "/";
    for (const char* name : files_of_v2) file(group + name, "");
    file(group + "memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
    file(group + "memory.current", "0\n");
  }
}

void FakeCgroups::make_v1(std::initializer_list<std::uint64_t> ids) const {
  const std::vector<std::pair<std::string, std::vector<std::string>>> hierarchies = {
      {"cpu", {"cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us"}},
      {"memory", {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control"}},
      {"pids", {"pids.max"}},
      {"cpuset", {"cpuset.cpus", "cpuset.mems"}},
      {"freezer", {"freezer.state"}},
      {"blkio",
       {"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
        "blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device", "blkio.bfq.weight"}},
  };
  for (const auto& [controller, files] : hierarchies) {
    file(controller + "/cgroup.procs", "");
    if (controller == "cpuset") {
      for (const char* level : {"", "neap/", "neap/p/"}) {
        file("cpuset/" + std::string(level) + "cpuset.cpus", "0-3\n");
        file("cpuset/" + std::string(level) + "cpuset.mems", "0\n");
      }
    }
    for (const std::uint64_t id : ids) {
      const std::string group = controller + "/neap/p/" + std::to_string(id) + "/";
      file(group + "cgroup.procs", "");
      for (const std::string& name : files) file(group + name, "");
    }
  }
}

}  // namespace neap::local::testing
