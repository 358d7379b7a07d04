// Limits of the host as files ask for them, by path and by kind of work; and what a task gets.
// The daemon hands both texts over as JSON: a task's in its launch text under "host",
//
//   {"cpu_weight": 200, "cpu_quota_milli": 1500, "cpus": "0-3" or "near",
//    "memory_max_mib": 8192, "memory_high_mib": 6144, "processes": 4096,
//    "io_weight": 100, "network_bytes": 100000000,
//    "io": [{"path": "/data", "read_bytes": 1, "write_bytes": 1,
//            "read_operations": 1, "write_operations": 1}],
//    "paths": ["/data/set", "/models/m"]}
//
// the pool's as {"inference": {…}, "training": {…}, "storage": [{"path": "/data",
// "class": "throughput", "for": "training", "read_bytes": …}], "interfaces": ["eth0"]}.
// Bytes and operations are per second; all keys may be absent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/local/cgroup_limits.h"
#include "backend/local/json.h"
#include "core/model/result.h"

namespace neap::local {

enum class KindOfWork : std::uint8_t { inference, training };

struct PathLimit {
  std::string path;
  IoLimit limit;  // without a device
};

struct HostLimits {
  CgroupLimits limits;  // all but I/O
  bool near = false;    // the processors near its devices
  std::vector<PathLimit> io;
  std::vector<std::string> paths;  // that get the limits of their storage class
};

enum class StorageKind : std::uint8_t { throughput, low_latency };
struct StorageClass {
  std::string path;  // it and all below; the longest that fits is a path's class
  StorageKind kind = StorageKind::throughput;
  bool for_inference = true;
  bool for_training = true;
  IoLimit limit;  // without a device
};

struct HostPolicy {
  HostLimits inference;
  HostLimits training;
  std::vector<StorageClass> storage;
  std::vector<std::string> interfaces;
};

inline constexpr std::size_t host_text_limit = 256 * 1024;

// Strict; errors name the field. `where` is the prefix of their names, such as "host.".
[[nodiscard]] Result<HostLimits> read_host_limits(const Json& object, const std::string& where);
[[nodiscard]] Result<HostPolicy> parse_host_policy(std::string_view text);

struct ChosenLimits {
  CgroupLimits limits;
  CgroupLimits asked;  // the part of them that the task itself asks for, its paths included
};

// What the machine knows, apart from the rules here.
struct HostFacts {
  std::function<Result<std::string>(const std::string& path)> disk_of;
  std::function<Result<std::string>()> processors_near;
};

// What the task says goes before what the pool says for its kind. Limits that meet on one disk are
// joined to the lower ones.
[[nodiscard]] Result<ChosenLimits> choose_limits(const HostLimits& task, KindOfWork kind,
                                                 const HostPolicy& policy, const HostFacts& facts);

}  // namespace neap::local
