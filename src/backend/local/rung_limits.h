// Which host limits a rung of the ladder (measure/ladder.h) means here, for each resource. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/local/cgroup_limits.h"
#include "core/model/result.h"
#include "measure/ladder.h"

namespace neap::local {

struct RungFacts {
  measure::Resource resource{};
  measure::Rung rung{};
  std::int64_t processors = 0;                 // of the machine, numbered from 0
  std::int64_t service_cpu_milli = 0;          // what the service takes, alone where that is known
  std::int64_t neighbours = 1;                 // that share what is left
  std::string disk;                            // "8:0", which is fought over
  std::optional<std::int64_t> io_bytes_per_s;  // that this neighbour moved before the first rung
  std::optional<std::int64_t> link_bytes_per_s;  // of the machine's link
  std::int64_t memory_bytes = 0;                 // that this neighbour holds
};

// `usual`: the limits without the ladder, which the rung replaces or adds to. unavailable, with
// what to do in its place, where no limit of the host is this rung.
[[nodiscard]] Result<CgroupLimits> neighbour_limits(const RungFacts& facts, CgroupLimits usual);
[[nodiscard]] Result<CgroupLimits> service_limits(const RungFacts& facts, CgroupLimits usual);

}  // namespace neap::local
