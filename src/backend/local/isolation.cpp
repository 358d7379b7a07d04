#include "backend/local/isolation.h"

#include <algorithm>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "; ") + line;
  return out;
}

// What of `wanted` is not so already.
CgroupLimits differing(const CgroupLimits& now, CgroupLimits wanted) {
  const auto drop = [](auto& amount, const auto& other) {
    if (amount == other) amount.reset();
  };
  drop(wanted.cpu_weight, now.cpu_weight);
  drop(wanted.cpu_quota_milli, now.cpu_quota_milli);
  drop(wanted.memory_max_bytes, now.memory_max_bytes);
  drop(wanted.memory_high_bytes, now.memory_high_bytes);
  drop(wanted.processes_max, now.processes_max);
  drop(wanted.io_weight, now.io_weight);
  drop(wanted.network_bytes, now.network_bytes);
  if (wanted.cpus == now.cpus) wanted.cpus.clear();
  if (wanted.io == now.io) wanted.io.clear();
  return wanted;
}

}  // namespace

std::string_view name_of(Method method) {
  switch (method) {
    case Method::cpu_weight:
      return "cpu weight";
    case Method::cpu_quota:
      return "cpu quota";
    case Method::cpu_set:
      return "cpus";
    case Method::memory_max:
      return "memory max";
    case Method::memory_high:
      return "memory high";
    case Method::processes:
      return "processes max";
    case Method::io_bandwidth:
      return "io bandwidth";
    case Method::io_operations:
      return "io operations";
    case Method::io_weight:
      return "io weight";
    case Method::network:
      return "network";
  }
  return "unknown";
}

std::optional<Method> method_called(std::string_view name) {
  for (const Method method : all_methods) {
    if (name_of(method) == name) return method;
  }
  return std::nullopt;
}

std::vector<Method> methods_of(const CgroupLimits& limits) {
  std::vector<Method> out;
  if (limits.cpu_weight) out.push_back(Method::cpu_weight);
  if (limits.cpu_quota_milli) out.push_back(Method::cpu_quota);
  if (!limits.cpus.empty()) out.push_back(Method::cpu_set);
  if (limits.memory_max_bytes) out.push_back(Method::memory_max);
  if (limits.memory_high_bytes) out.push_back(Method::memory_high);
  if (limits.processes_max) out.push_back(Method::processes);
  const auto any = [&](auto&& of) { return std::any_of(limits.io.begin(), limits.io.end(), of); };
  if (any([](const IoLimit& io) { return io.read_bytes || io.write_bytes; })) {
    out.push_back(Method::io_bandwidth);
  }
  if (any([](const IoLimit& io) { return io.read_operations || io.write_operations; })) {
    out.push_back(Method::io_operations);
  }
  if (limits.io_weight) out.push_back(Method::io_weight);
  if (limits.network_bytes) out.push_back(Method::network);
  return out;
}

Isolation::Isolation(std::string cgroup_root, TrafficShaper shaper)
    : cgroup_root_(std::move(cgroup_root)), shaper_(std::move(shaper)) {}

void Isolation::set_checks(MethodChecks checks) {
  const std::lock_guard lock(mutex_);
  checks_ = std::move(checks);
}

MethodChecks Isolation::checks() const {
  const std::lock_guard lock(mutex_);
  return checks_;
}

Result<void> Isolation::offers(const CgroupLimits& limits) const {
  const std::lock_guard lock(mutex_);
  return offered(methods_of(limits));
}

Result<void> Isolation::offers_all(const std::vector<std::string>& names) const {
  std::vector<Method> methods;
  for (const std::string& name : names) {
    if (const auto method = method_called(name)) methods.push_back(*method);
  }
  const std::lock_guard lock(mutex_);
  return offered(methods);
}

Result<void> Isolation::offered(const std::vector<Method>& methods) const {
  if (cgroup_root_.empty() && !methods.empty()) {
    return fail(ErrorCode::unavailable, "host limits are off: this pool makes no control groups");
  }
  for (const Method method : methods) {
    const auto check = checks_.find(method);
    if (check == checks_.end() || check->second.state != MethodState::failed) continue;
    return fail(ErrorCode::unavailable, "host limit '" + std::string(name_of(method)) +
                                            "' is not offered here: " + check->second.evidence);
  }
  return {};
}

void Isolation::keep_offered(SupervisedGroup& group) const {
  const std::lock_guard lock(mutex_);
  CgroupLimits& limits = group.limits;
  for (const Method method : methods_of(limits)) {
    const std::string_view name = name_of(method);
    const auto& required = group.required;
    if (std::find(required.begin(), required.end(), name) != required.end()) continue;
    const auto check = checks_.find(method);
    const MethodState state = check == checks_.end() ? MethodState::unchecked : check->second.state;
    // Few disks have a scheduler that knows weights: given to all only where it was seen to hold.
    const bool only_held = method == Method::io_weight;
    if (state == MethodState::held || (state == MethodState::unchecked && !only_held)) continue;
    switch (method) {
      case Method::cpu_weight:
        limits.cpu_weight.reset();
        break;
      case Method::cpu_quota:
        limits.cpu_quota_milli.reset();
        break;
      case Method::cpu_set:
        limits.cpus.clear();
        break;
      case Method::memory_max:
        limits.memory_max_bytes.reset();
        break;
      case Method::memory_high:
        limits.memory_high_bytes.reset();
        break;
      case Method::processes:
        limits.processes_max.reset();
        break;
      case Method::io_weight:
        limits.io_weight.reset();
        break;
      case Method::network:
        limits.network_bytes.reset();
        break;
      case Method::io_bandwidth:
        for (IoLimit& io : limits.io) io.read_bytes = io.write_bytes = std::nullopt;
        break;
      case Method::io_operations:
        for (IoLimit& io : limits.io) io.read_operations = io.write_operations = std::nullopt;
        break;
    }
  }
}

Result<void> Isolation::prepare(SupervisedTask& task) const {
  if (!task.cgroup || !task.cgroup->limits.network_bytes) return {};
  if (auto ready = shaper_.prepare(); !ready) return ready;
  const auto claimed = shaper_.claim(*task.cgroup->limits.network_bytes);
  if (!claimed) return tl::unexpected(claimed.error());
  task.cgroup->traffic_class = *claimed;
  return {};
}

void Isolation::add(const std::string& directory, const SupervisedTask& task) {
  const std::lock_guard lock(mutex_);
  running_.insert_or_assign(task.allocation, Running{directory, task});
}

void Isolation::started(AllocationId allocation) {
  const std::lock_guard lock(mutex_);
  if (const auto found = running_.find(allocation); found != running_.end()) {
    found->second.started = true;
  }
}

void Isolation::ended(AllocationId allocation) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(allocation);
  if (found == running_.end()) return;
  const auto& group = found->second.task.cgroup;
  if (group && group->traffic_class != 0) shaper_.remove(group->traffic_class);
  running_.erase(found);
}

std::vector<TaskGroup> Isolation::groups() const {
  const std::lock_guard lock(mutex_);
  std::vector<TaskGroup> out;
  for (const auto& [allocation, running] : running_) {
    if (!running.started || !running.task.cgroup) continue;
    const SupervisedGroup& its = *running.task.cgroup;
    Cgroup group = Cgroup::existing(detect_cgroups(its.root), its.name);
    if (!group.empty_handed()) out.push_back({allocation, std::move(group)});
  }
  return out;
}

Result<CgroupLimits> Isolation::limits_of(AllocationId allocation) const {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(allocation);
  if (found == running_.end() || !found->second.task.cgroup) {
    return fail(ErrorCode::not_found, "runs in no control group here",
                "allocation " + std::to_string(allocation.value));
  }
  return found->second.task.cgroup->limits;
}

Result<void> Isolation::change(AllocationId allocation, const CgroupLimits& limits) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(allocation);
  if (found == running_.end() || !found->second.task.cgroup) {
    return fail(ErrorCode::not_found, "runs in no control group here",
                "allocation " + std::to_string(allocation.value));
  }
  if (!found->second.started) {
    return fail(ErrorCode::conflict, "is still starting; try again",
                "allocation " + std::to_string(allocation.value));
  }
  // What stays as it is need not be asked again: it may have been given before it was tried.
  const CgroupLimits fresh = differing(found->second.task.cgroup->limits, limits);
  if (auto may = offered(methods_of(fresh)); !may) return may;
  return apply(found->second, limits);
}

Result<void> Isolation::apply(Running& running, const CgroupLimits& limits) {
  const SupervisedGroup before = *running.task.cgroup;
  const Cgroup group = Cgroup::existing(detect_cgroups(before.root), before.name);
  if (group.empty_handed()) {
    return fail(ErrorCode::not_found, "its control group is gone", before.name);
  }
  const std::int64_t held = group.memory_bytes();
  if (limits.memory_max_bytes && limits.memory_max_bytes != before.limits.memory_max_bytes &&
      *limits.memory_max_bytes < held) {
    return fail(ErrorCode::conflict, "memory max of " + std::to_string(*limits.memory_max_bytes) +
                                         " bytes is below the " + std::to_string(held) +
                                         " that it holds");
  }
  const auto undo = [&](Error error) -> Result<void> {
    (void)group.change(limits, before.limits);
    (void)set_traffic(group, *running.task.cgroup, before.limits.network_bytes);
    running.task.cgroup->limits = before.limits;  // a class that was marked stays its own
    return tl::unexpected(std::move(error));
  };
  const auto refused = group.change(before.limits, limits);
  if (!refused.empty()) {
    (void)group.change(limits, before.limits);
    return fail(ErrorCode::unavailable, joined(refused), before.name);
  }
  if (limits.network_bytes != before.limits.network_bytes) {
    auto shaped = set_traffic(group, *running.task.cgroup, limits.network_bytes);
    if (!shaped) return undo(shaped.error());
  }
  running.task.cgroup->limits = limits;
  auto kept = write_durably(spec_path(running.directory), spec_text(running.task), 0600);
  if (!kept) return undo(kept.error());
  return {};
}

Result<void> Isolation::set_traffic(const Cgroup& group, SupervisedGroup& spec,
                                    std::optional<std::int64_t> bytes) const {
  if (spec.traffic_class != 0) {
    // Lifted, it keeps its class: what it sends goes on to carry the number.
    return shaper_.set(spec.traffic_class, bytes.value_or(traffic_unlimited));
  }
  if (!bytes) return {};
  if (auto ready = shaper_.prepare(); !ready) return ready;
  const auto claimed = shaper_.claim(*bytes);
  if (!claimed) return tl::unexpected(claimed.error());
  auto marked = classify_traffic(group.unified_directory(), *claimed);
  if (!marked) {
    shaper_.remove(*claimed);
    return marked;
  }
  spec.traffic_class = *claimed;
  return {};
}

}  // namespace neap::local
