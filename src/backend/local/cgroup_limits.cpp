#include "backend/local/cgroup_limits.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace neap::local {
namespace {

constexpr std::int64_t quota_period_us = 100'000;
constexpr std::int64_t bfq_weight_max = 1000;

using Amount = std::optional<std::int64_t>;

CgroupSettings settings_of_v1(const CgroupLimits& limits) {
  CgroupSettings out;
  const auto add = [&](const char* what, const char* controller, const char* file,
                       std::int64_t value, const char* lifted) {
    out.settings.push_back({what, controller, file, "", std::to_string(value), lifted});
  };
  if (limits.cpu_weight) {
    add("cpu weight", "cpu", "cpu.shares",
        std::max<std::int64_t>(*limits.cpu_weight * 1024 / 100, 2), "1024");
  }
  if (limits.cpu_quota_milli) {
    add("cpu quota", "cpu", "cpu.cfs_period_us", quota_period_us, "100000");
    add("cpu quota", "cpu", "cpu.cfs_quota_us", *limits.cpu_quota_milli * 100, "-1");
  }
  if (limits.memory_max_bytes) {
    add("memory max", "memory", "memory.limit_in_bytes", *limits.memory_max_bytes, "-1");
  }
  if (limits.memory_high_bytes) {
    out.unavailable.emplace_back("memory high: cgroup v1 has no such limit");
  }
  if (limits.processes_max) {
    add("processes max", "pids", "pids.max", *limits.processes_max, "max");
  }
  if (limits.io_weight) {
    add("io weight", "blkio", "blkio.bfq.weight",
        std::clamp<std::int64_t>(*limits.io_weight, 1, bfq_weight_max), "100");
  }
  if (!limits.cpus.empty()) {
    out.settings.push_back({"cpus", "cpuset", "cpuset.cpus", "", limits.cpus, ""});
  }
  for (const IoLimit& io : limits.io) {
    const std::pair<const char*, Amount> files[] = {
        {"blkio.throttle.read_bps_device", io.read_bytes},
        {"blkio.throttle.write_bps_device", io.write_bytes},
        {"blkio.throttle.read_iops_device", io.read_operations},
        {"blkio.throttle.write_iops_device", io.write_operations}};
    for (const auto& [file, amount] : files) {
      if (!amount) continue;
      const bool bytes = std::string_view(file).find("bps") != std::string_view::npos;
      out.settings.push_back({bytes ? "io bandwidth" : "io operations", "blkio", file, io.device,
                              io.device + " " + std::to_string(*amount), io.device + " 0"});
    }
  }
  return out;
}

CgroupSettings settings_of_v2(const CgroupLimits& limits) {
  CgroupSettings out;
  const auto add = [&](const char* what, const char* file, std::string value, const char* lifted) {
    const std::string_view name = file;
    std::string controller(name.substr(0, name.find('.')));
    out.settings.push_back({what, std::move(controller), file, "", std::move(value), lifted});
  };
  if (limits.cpu_weight) {
    add("cpu weight", "cpu.weight", std::to_string(*limits.cpu_weight), "100");
  }
  if (limits.cpu_quota_milli) {
    const std::string period = " " + std::to_string(quota_period_us);
    add("cpu quota", "cpu.max", std::to_string(*limits.cpu_quota_milli * 100) + period,
        "max 100000");
  }
  if (limits.memory_max_bytes) {
    add("memory max", "memory.max", std::to_string(*limits.memory_max_bytes), "max");
  }
  if (limits.memory_high_bytes) {
    add("memory high", "memory.high", std::to_string(*limits.memory_high_bytes), "max");
  }
  if (limits.processes_max) {
    add("processes max", "pids.max", std::to_string(*limits.processes_max), "max");
  }
  if (limits.io_weight) {
    add("io weight", "io.weight", "default " + std::to_string(*limits.io_weight), "default 100");
  }
  if (!limits.cpus.empty()) add("cpus", "cpuset.cpus", limits.cpus, "");
  for (const IoLimit& io : limits.io) {
    const bool bytes = io.read_bytes || io.write_bytes;
    out.settings.push_back({bytes ? "io bandwidth" : "io operations", "io", "io.max", io.device,
                            io_text(io), io_text({io.device, {}, {}, {}, {}})});
  }
  return out;
}

}  // namespace

std::string io_text(const IoLimit& io) {
  const auto text = [](const Amount& amount) { return amount ? std::to_string(*amount) : "max"; };
  return io.device + " rbps=" + text(io.read_bytes) + " wbps=" + text(io.write_bytes) +
         " riops=" + text(io.read_operations) + " wiops=" + text(io.write_operations);
}

std::optional<IoLimit> parse_io_text(std::string_view text) {
  const auto word = [&text] {
    const std::string_view first = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(first.size() + 1, text.size()));
    return first;
  };
  IoLimit out;
  out.device = word();
  const std::size_t colon = out.device.find(':');
  const bool digits = out.device.find_first_not_of("0123456789:") == std::string::npos;
  if (colon == 0 || colon == std::string::npos || colon + 1 == out.device.size() || !digits ||
      out.device.find(':', colon + 1) != std::string::npos || out.device.size() > 20) {
    return std::nullopt;
  }
  const std::pair<std::string_view, Amount*> fields[] = {{"rbps=", &out.read_bytes},
                                                         {"wbps=", &out.write_bytes},
                                                         {"riops=", &out.read_operations},
                                                         {"wiops=", &out.write_operations}};
  for (const auto& [name, amount] : fields) {
    std::string_view value = word();
    if (!value.starts_with(name)) return std::nullopt;
    value.remove_prefix(name.size());
    if (value == "max") continue;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < 1) {
      return std::nullopt;
    }
    *amount = number;
  }
  if (!text.empty()) return std::nullopt;
  return out;
}

CgroupSettings settings_of(CgroupVersion version, const CgroupLimits& limits) {
  if (version == CgroupVersion::v1) return settings_of_v1(limits);
  if (version == CgroupVersion::v2) return settings_of_v2(limits);
  return {};
}

}  // namespace neap::local
