// What this machine and the tasks on it have used and waited for, from the counters of the kernel.
// One reading holds counters; two of them give the signals of the time between. Works with control
// groups v1 and v2: most comes from /proc, by the processes of a group. What cannot be read
// (no pressure file, no delay accounting, another user's counters) stays unknown.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/local/cgroup.h"
#include "core/model/units.h"
#include "measure/diagnosis.h"

namespace neap::local {

struct ThreadTimes {
  std::int64_t ran_ns = 0, waited_ns = 0;     // for a processor
  std::optional<std::int64_t> io_ticks = {};  // waited for storage
};

struct ProcessCounters {
  std::map<pid_t, ThreadTimes> threads = {};
  std::int64_t major_faults = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> io_bytes = {};
};

struct TaskCounters {
  std::map<pid_t, ProcessCounters> processes = {};
  std::optional<std::int64_t> periods = {}, throttled = {};  // of its CPU quota
  std::optional<std::int64_t> limit_hits = {};               // of its memory limit
};

struct DiskCounters {
  std::string number = {};  // "8:0"
  std::int64_t operations = 0, operation_ms = 0, busy_ms = 0;
};
struct LinkCounters {
  std::int64_t sent_bytes = 0, dropped = 0;
  std::optional<std::int64_t> bytes_per_s = {};  // what it can carry
};

struct MachineCounters {
  std::optional<std::int64_t> cpu_busy_ticks = {}, cpu_ticks = {};
  std::int64_t processors = 0;
  std::optional<std::int64_t> cpu_stall_us = {}, memory_stall_us = {}, io_stall_us = {};
  std::optional<Ppm> memory_available = {};
  std::optional<std::int64_t> swapped_pages = {};
  std::optional<std::int64_t> segments_again = {};
  std::map<std::string, DiskCounters> disks = {};
  std::map<std::string, LinkCounters> links = {};
};

struct HostReading {
  Time at;
  MachineCounters machine = {};
  std::map<AllocationId, TaskCounters> tasks = {};
};

struct TaskGroup {
  AllocationId allocation;
  Cgroup group;
};

// `proc` and `sys` are where those file systems are; tests put a tree there.
[[nodiscard]] HostReading read_host(Time now, const std::vector<TaskGroup>& groups,
                                    const std::string& proc = "/proc",
                                    const std::string& sys = "/sys");

[[nodiscard]] measure::Machine machine_between(const HostReading& before, const HostReading& after);
// "8:0" of the disk that was busiest between the two, empty: none was.
[[nodiscard]] std::string busiest_disk(const HostReading& before, const HostReading& after);
// Nothing is known of one that is not in both.
[[nodiscard]] measure::Use use_between(const HostReading& before, const HostReading& after,
                                       AllocationId allocation);
// Of several tasks together, such as the replicas of a service: amounts add up, waits are the
// worst.
void add_use(measure::Use& into, const measure::Use& more);

}  // namespace neap::local
