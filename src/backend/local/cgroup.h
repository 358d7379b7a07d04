// Control groups v1 and v2 behind one interface. A group of an allocation is neap/<pool>/<id>
// under the root; in v1 once in each hierarchy. What this machine or this user cannot enforce is
// named, and nothing fails for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"

namespace neap::local {

struct CgroupLimits {
  std::optional<std::int64_t> cpu_weight;       // 1 to 10000; 100 is the usual one
  std::optional<std::int64_t> cpu_quota_milli;  // 1000 = one core
  std::optional<std::int64_t> memory_max_bytes;
  std::optional<std::int64_t> processes_max;
  std::string cpus;  // such as "0-3,8"; empty = any
};

enum class CgroupVersion : std::uint8_t { none, v1, v2 };

struct CgroupRoot {
  CgroupVersion version = CgroupVersion::none;
  std::string path;  // where the hierarchies (v1) or the one hierarchy (v2) are mounted
};

// What is mounted at `path`: v2 when it has controllers of its own, v1 when there are v1
// hierarchies below it (a v2 hierarchy without controllers beside them is used for killing).
[[nodiscard]] CgroupRoot detect_cgroups(const std::string& path = "/sys/fs/cgroup");

class Cgroup {
 public:
  struct Created;

  // `name` is a relative path such as neap/default/42; missing parents are made.
  [[nodiscard]] static Created create(const CgroupRoot& root, const std::string& name,
                                      const CgroupLimits& limits);
  // A group made earlier, perhaps by a process that is gone.
  [[nodiscard]] static Cgroup existing(const CgroupRoot& root, const std::string& name);

  // Not able to hold processes: nothing could be made.
  [[nodiscard]] bool empty_handed() const { return directories_.empty(); }

  // Moves `pid` (0: the caller); async-signal-safe, for use between fork and exec.
  [[nodiscard]] bool enter(pid_t pid) const;
  // Sorted; the members of groups below it too.
  [[nodiscard]] std::vector<pid_t> processes() const;
  [[nodiscard]] Result<void> freeze() const;
  [[nodiscard]] Result<void> thaw() const;
  // SIGKILL to every member, at once where the kernel can, else frozen one by one. Processes may
  // still be dying afterwards: ask processes().
  void kill() const;
  [[nodiscard]] std::int64_t oom_kills() const;
  // Directories go when no process is left in them.
  void remove() const;

 private:
  struct Directory {
    std::string controller;  // v1: "memory" and so on; "" for a v2 hierarchy
    std::string path;
    std::string procs;  // path of cgroup.procs
  };

  Cgroup(CgroupVersion version, std::vector<Directory> directories)
      : version_(version), directories_(std::move(directories)) {}
  [[nodiscard]] static std::vector<Directory> places(const CgroupRoot& root,
                                                     const std::string& name);
  [[nodiscard]] const Directory* find(std::string_view controller) const;
  [[nodiscard]] const Directory* unified() const { return find(""); }
  void apply_v1(const CgroupLimits& limits, std::vector<std::string>& not_enforced) const;
  void apply_v2(const CgroupLimits& limits, std::vector<std::string>& not_enforced) const;
  [[nodiscard]] Result<void> set_frozen(std::string_view v1_state, std::string_view v2_state) const;

  CgroupVersion version_ = CgroupVersion::none;
  std::vector<Directory> directories_;
};

struct Cgroup::Created {
  Cgroup group;
  std::vector<std::string> not_enforced;  // "memory.max: Permission denied"
};

}  // namespace neap::local
