// Control groups v1 and v2 behind one interface. A group of an allocation is neap/<pool>/<id>
// under the root; in v1 once in each hierarchy. What this machine or this user cannot enforce is
// named, and nothing fails for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/local/cgroup_limits.h"
#include "core/model/result.h"

namespace neap::local {

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
  // From the limits `before` to `after`: writes what differs, and what `after` no longer has is
  // lifted. What could not be written is returned; the rest stands.
  [[nodiscard]] std::vector<std::string> change(const CgroupLimits& before,
                                                const CgroupLimits& after) const;
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
  // What its memory limit counts now; 0 where there is no such count.
  [[nodiscard]] std::int64_t memory_bytes() const;
  // The directory in which a control file of this v1 controller, or of v2, lies; empty: none.
  [[nodiscard]] std::string directory_of(std::string_view v1_controller) const;
  // Its place in the v2 hierarchy, which a v1 machine has beside the others; empty: none.
  [[nodiscard]] std::string unified_directory() const;
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
  void write(const CgroupSetting& setting, const std::string& value,
             std::vector<std::string>& not_enforced) const;
  [[nodiscard]] Result<void> set_frozen(std::string_view v1_state, std::string_view v2_state) const;

  CgroupVersion version_ = CgroupVersion::none;
  std::vector<Directory> directories_;
};

// Take away what nobody is in any more, in every hierarchy. A group with processes, or with groups
// below it, stays: the kernel refuses to remove it. First, the groups of allocations of a pool,
// such as neap/default-0123abcd, but those of `kept`; then, that pool's own and those of earlier
// pools of the name (neap/default and neap/default-*), where no group is left in them.
void remove_empty_groups(const CgroupRoot& root, const std::string& pool,
                         const std::vector<std::string>& kept);
void remove_empty_pools(const CgroupRoot& root, const std::string& name);

struct Cgroup::Created {
  Cgroup group;
  std::vector<std::string> not_enforced;  // "memory.max: Permission denied"
};

}  // namespace neap::local
