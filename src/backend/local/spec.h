// What the daemon tells a supervisor before it starts: <run>/tasks/<allocation>/spec.json.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/local/cgroup.h"
#include "backend/local/task_log.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

struct SupervisedService {
  std::int32_t port = 0;  // on 127.0.0.1
  std::string health_path = "/health";
  Micros interval = seconds(1);
  Micros timeout = seconds(1);
  std::int32_t failures = 3;  // in a row, then the replica is not ready
};

struct SupervisedGroup {
  std::string root = "/sys/fs/cgroup";
  std::string name;  // neap/<pool>/<allocation>
  CgroupLimits limits;
  std::uint32_t traffic_class = 0;    // of what it sends (traffic.h); 0: none
  std::vector<std::string> required;  // limits without which it is not started: "cpu quota"
};

struct SupervisedTask {
  AllocationId allocation;
  std::uint32_t epoch = 1;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"; NEAP_SOCKET is added
  std::string working_directory = "/";
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  // supplementary
  std::uint32_t umask = 022;
  bool signals = false;  // SIGTERM means: checkpoint, then exit 75
  std::string watch;     // glob below the working directory; empty = none
  Micros watch_settle = seconds(5);
  Micros watch_interval = seconds(1);
  LogLimits log;
  std::optional<SupervisedService> service;
  std::optional<SupervisedGroup> cgroup;
  Micros steps_every = seconds(10);
  Micros linger = minutes(1);  // after the end, waiting for the daemon's acknowledgement
};

inline constexpr std::size_t spec_size_limit = 1024 * 1024;

[[nodiscard]] std::string spec_text(const SupervisedTask& task);
// Strict: unknown fields, wrong types and values out of range are errors that name the field.
[[nodiscard]] Result<SupervisedTask> parse_spec(std::string_view text);

// The files of an allocation's directory, as the two sides know them.
[[nodiscard]] std::string spec_path(const std::string& directory);
[[nodiscard]] std::string control_path(const std::string& directory);
[[nodiscard]] std::string contract_path(const std::string& directory);
[[nodiscard]] std::string lock_path(const std::string& directory);
[[nodiscard]] std::string started_path(const std::string& directory);  // once the task was forked
[[nodiscard]] std::string exit_path(const std::string& directory);     // its exit status

}  // namespace neap::local
