#include "daemon/host_limit_views.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace neap::daemon {

namespace {

using local::Method;

std::string processors_text(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  std::string rest = std::to_string(1000 + milli % 1000).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return rest.empty() ? text : text + "." + rest;
}

std::string host_bytes_text(std::int64_t bytes) {
  constexpr std::int64_t mib = 1 << 20;
  if (bytes >= mib && bytes % mib == 0) return std::to_string(bytes / mib) + "MiB";
  return std::to_string(bytes) + " bytes";
}

// "read 100MiB/s, write_iops 2000/s", of the keys of a launch text.
std::string rates_text(const nlohmann::json& row) {
  std::string text;
  const auto add = [&](const char* key, const char* name, const auto& worded) {
    const auto found = row.find(key);
    if (found == row.end() || !found->is_number_integer()) return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " +
            worded(found->template get<std::int64_t>()) + "/s";
  };
  const auto plain = [](std::int64_t value) { return std::to_string(value); };
  add("read_bytes", "read", host_bytes_text);
  add("write_bytes", "write", host_bytes_text);
  add("read_operations", "read_iops", plain);
  add("write_operations", "write_iops", plain);
  return text;
}

std::string launch_text_of(const nlohmann::json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void add_listed(const nlohmann::json& host, std::vector<api::Attribute>& out) {
  if (const auto io = host.find("io"); io != host.end() && io->is_array()) {
    for (const auto& row : *io)
      out.push_back({"io " + launch_text_of(row, "path"), rates_text(row)});
  }
  std::string paths;
  if (const auto given = host.find("paths"); given != host.end() && given->is_array()) {
    for (const auto& path : *given) {
      if (path.is_string()) paths += (paths.empty() ? "" : ", ") + path.get<std::string>();
    }
  }
  if (!paths.empty()) out.push_back({"paths", paths});
}

std::string io_text_of(const std::vector<local::IoLimit>& limits, Method method) {
  std::string text;
  const auto add = [&](const local::IoLimit& io, const char* name,
                       const std::optional<std::int64_t>& value, const auto& worded) {
    if (!value) return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + worded(*value) + "/s of disk " +
            io.device;
  };
  const auto plain = [](std::int64_t value) { return std::to_string(value); };
  for (const local::IoLimit& io : limits) {
    if (method == Method::io_bandwidth) {
      add(io, "read", io.read_bytes, host_bytes_text);
      add(io, "write", io.write_bytes, host_bytes_text);
    } else {
      add(io, "read_iops", io.read_operations, plain);
      add(io, "write_iops", io.write_operations, plain);
    }
  }
  return text;
}

std::string limit_text(const local::CgroupLimits& limits, Method method) {
  switch (method) {
    case Method::cpu_weight:
      return std::to_string(limits.cpu_weight.value_or(0));
    case Method::cpu_quota:
      return processors_text(limits.cpu_quota_milli.value_or(0)) + " processors";
    case Method::cpu_set:
      return limits.cpus;
    case Method::memory_max:
      return host_bytes_text(limits.memory_max_bytes.value_or(0));
    case Method::memory_high:
      return host_bytes_text(limits.memory_high_bytes.value_or(0));
    case Method::processes:
      return std::to_string(limits.processes_max.value_or(0));
    case Method::io_weight:
      return std::to_string(limits.io_weight.value_or(0));
    case Method::network:
      return host_bytes_text(limits.network_bytes.value_or(0)) + "/s";
    case Method::io_bandwidth:
    case Method::io_operations:
      break;
  }
  return io_text_of(limits.io, method);
}

}  // namespace

std::vector<api::Attribute> host_limits_asked(const std::string& launch) {
  std::vector<api::Attribute> out;
  const auto whole = nlohmann::json::parse(launch, nullptr, false);
  if (!whole.is_object()) return out;
  const auto add = [&](const nlohmann::json& row, const char* key, const char* name,
                       const auto& worded) {
    const auto found = row.find(key);
    if (found == row.end() || !found->is_number_integer()) return;
    const auto value = found->template get<std::int64_t>();
    if (value > 0) out.push_back({name, worded(value)});
  };
  const auto plain = [](std::int64_t value) { return std::to_string(value); };
  const auto mib = [](std::int64_t value) { return std::to_string(value) + "MiB"; };
  add(whole, "cpu_milli", "cpu", processors_text);
  add(whole, "host_memory_mib", "host_memory", mib);
  const auto host = whole.find("host");
  if (host == whole.end() || !host->is_object()) return out;
  add(*host, "cpu_weight", "cpu_weight", plain);
  add(*host, "cpu_quota_milli", "cpu_quota", processors_text);
  if (const std::string cpus = launch_text_of(*host, "cpus"); !cpus.empty())
    out.push_back({"cpus", cpus});
  add(*host, "memory_max_mib", "memory_max", mib);
  add(*host, "memory_high_mib", "memory_high", mib);
  add(*host, "processes", "processes", plain);
  add(*host, "io_weight", "io_weight", plain);
  add(*host, "network_bytes", "network",
      [](std::int64_t value) { return host_bytes_text(value) + "/s"; });
  add_listed(*host, out);
  return out;
}

void view_host_limits(const HostLimitSources& sources, api::HostLimitsView& into) {
  std::map<std::string, std::string> refused;  // method -> why
  for (const std::string& line : sources.refused) {
    const std::size_t colon = line.find(": ");
    refused[line.substr(0, colon)] =
        colon == std::string::npos ? "the kernel refused" : line.substr(colon + 2);
  }
  std::set<Method> wanted{Method::cpu_weight, Method::io_weight};  // which every task is given
  for (const Method method : local::methods_of(sources.usual.limits)) wanted.insert(method);
  if (sources.usual.near) wanted.insert(Method::cpu_set);
  for (const Method method : local::methods_of(sources.limits)) {
    const std::string name(local::name_of(method));
    if (!refused.contains(name))
      into.enforced.push_back({name, limit_text(sources.limits, method)});
    wanted.erase(method);
  }
  for (const Method method : wanted) {
    const std::string name(local::name_of(method));
    if (refused.contains(name)) continue;
    const auto check = sources.checks.find(method);
    const bool known = check != sources.checks.end() && !check->second.evidence.empty();
    into.not_enforced.push_back({name, known ? check->second.evidence : "not to be had here"});
  }
  for (const auto& [name, why] : refused) into.not_enforced.push_back({name, why});
}

}  // namespace neap::daemon
