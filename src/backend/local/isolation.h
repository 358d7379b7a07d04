// Host limits per task (B1, B5): which methods this machine has been seen to hold, and the limits
// of each allocation that runs, which may change while it does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/local/cgroup.h"
#include "backend/local/host_signals.h"
#include "backend/local/spec.h"
#include "backend/local/traffic.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

enum class Method : std::uint8_t {
  cpu_weight,
  cpu_quota,
  cpu_set,
  memory_max,
  memory_high,
  processes,
  io_bandwidth,
  io_operations,
  io_weight,
  network,
};
inline constexpr Method all_methods[] = {
    Method::cpu_weight,  Method::cpu_quota, Method::cpu_set,      Method::memory_max,
    Method::memory_high, Method::processes, Method::io_bandwidth, Method::io_operations,
    Method::io_weight,   Method::network};

// "cpu weight", as CgroupSetting::what and everything that people read.
[[nodiscard]] std::string_view name_of(Method method);
[[nodiscard]] std::optional<Method> method_called(std::string_view name);
// The methods that these limits need.
[[nodiscard]] std::vector<Method> methods_of(const CgroupLimits& limits);

// unchecked: the operator has turned checks off, or they are still under way.
enum class MethodState : std::uint8_t { unchecked, held, failed };
struct MethodCheck {
  MethodState state = MethodState::unchecked;
  std::string evidence;  // what was measured, or why it is not offered
};
using MethodChecks = std::map<Method, MethodCheck>;

// Safe to call from any thread. Every call writes a handful of control files at most, and with a
// network limit runs tc (some milliseconds).
class Isolation {
 public:
  explicit Isolation(std::string cgroup_root, TrafficShaper shaper = TrafficShaper({}));

  void set_checks(MethodChecks checks);
  [[nodiscard]] MethodChecks checks() const;

  // May these limits be asked for? unavailable, with the reason, when a method that they need has
  // failed its check.
  [[nodiscard]] Result<void> offers(const CgroupLimits& limits) const;
  // The same of SupervisedGroup::required.
  [[nodiscard]] Result<void> offers_all(const std::vector<std::string>& names) const;

  // Takes away what the pool gives everybody and this machine does not hold; `required` stays.
  void keep_offered(SupervisedGroup& group) const;

  // An allocation that starts: makes its class of traffic where it needs one.
  [[nodiscard]] Result<void> prepare(SupervisedTask& task) const;
  // It is about to start, or found by a daemon that starts; its files are in `directory`.
  void add(const std::string& directory, const SupervisedTask& task);
  // From now on its limits may change: until then its supervisor sets those of its spec.
  void started(AllocationId allocation);
  void ended(AllocationId allocation);

  // Those that run, with what they hold of the machine.
  [[nodiscard]] std::vector<TaskGroup> groups() const;

  // The limits in force; not_found when it does not run here or has no group.
  [[nodiscard]] Result<CgroupLimits> limits_of(AllocationId allocation) const;

  // Gives a running allocation other limits at once. `limits` is all of them: one that it had and
  // `limits` lacks is lifted, so begin with limits_of(). All or nothing: after an error the
  // earlier limits are in force.
  //   not_found    it does not run here (any more), or runs without a group
  //   unavailable  a method is not offered here, or the kernel refused; the message says which
  //   conflict     it is still starting: try again; or memory max below what it holds now, which
  //                would kill it
  // The limits outlive the daemon: the next one finds them in the task's files.
  [[nodiscard]] Result<void> change(AllocationId allocation, const CgroupLimits& limits);

 private:
  struct Running {
    std::string directory;
    SupervisedTask task;
    bool started = false;
  };
  [[nodiscard]] Result<void> offered(const std::vector<Method>& methods) const;
  [[nodiscard]] Result<void> apply(Running& running, const CgroupLimits& limits);
  [[nodiscard]] Result<void> set_traffic(const Cgroup& group, SupervisedGroup& spec,
                                         std::optional<std::int64_t> bytes) const;

  const std::string cgroup_root_;
  const TrafficShaper shaper_;
  mutable std::mutex mutex_;
  MethodChecks checks_;                      // guarded by mutex_
  std::map<AllocationId, Running> running_;  // guarded by mutex_
};

}  // namespace neap::local
