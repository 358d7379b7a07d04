// What a control group limits, and which control files of v1 and v2 say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neap::local {

enum class CgroupVersion : std::uint8_t { none, v1, v2 };

// Of one block device, each per second; absent: no limit. In v1 buffered writes are not seen: they
// are made later by the kernel, outside any group.
struct IoLimit {
  std::string device;  // "8:0", of the whole disk
  std::optional<std::int64_t> read_bytes;
  std::optional<std::int64_t> write_bytes;
  std::optional<std::int64_t> read_operations;
  std::optional<std::int64_t> write_operations;

  friend bool operator==(const IoLimit&, const IoLimit&) = default;
};

// "8:0 rbps=1048576 wbps=max riops=max wiops=100", as io.max of v2 has it.
[[nodiscard]] std::string io_text(const IoLimit& limit);
[[nodiscard]] std::optional<IoLimit> parse_io_text(std::string_view text);

struct CgroupLimits {
  std::optional<std::int64_t> cpu_weight;       // 1 to 10000; 100 is the usual one
  std::optional<std::int64_t> cpu_quota_milli;  // 1000 = one core
  std::optional<std::int64_t> memory_max_bytes;
  std::optional<std::int64_t> memory_high_bytes;  // v2: above it, reclaim slows the task down
  std::optional<std::int64_t> processes_max;      // threads count too
  std::optional<std::int64_t> io_weight;          // 1 to 10000; 100 is the usual one
  std::optional<std::int64_t> network_bytes;      // sent per second; see traffic.h
  std::string cpus;                               // such as "0-3,8"; empty = any
  std::vector<IoLimit> io;                        // one a device

  friend bool operator==(const CgroupLimits&, const CgroupLimits&) = default;
};

// One control file of a group.
struct CgroupSetting {
  std::string what;        // as people read it: "cpu quota"
  std::string controller;  // in v1, the hierarchy
  std::string file;
  std::string device;  // of I/O, else empty
  std::string value;
  std::string lifted;  // what stands there without a limit; empty: what the group above has
};

struct CgroupSettings {
  std::vector<CgroupSetting> settings;
  std::vector<std::string> unavailable;  // "memory high: cgroup v1 has no such limit"
};

// Traffic is no matter of control files and not among them.
[[nodiscard]] CgroupSettings settings_of(CgroupVersion version, const CgroupLimits& limits);

}  // namespace neap::local
