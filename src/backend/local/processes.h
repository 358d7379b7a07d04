// What /proc says about processes: descendants of a supervisor, and what a dead one left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/local/cgroup.h"

namespace neap::local {

struct ProcessFacts {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;  // since boot: with the pid it names one process for good
};

[[nodiscard]] std::optional<ProcessFacts> read_process(pid_t pid);
// All of this machine that are not zombies, ascending by pid.
[[nodiscard]] std::vector<ProcessFacts> list_processes();
// Children, their children and so on; not `ancestor` itself.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t ancestor);

// How to recognise what a task started when its supervisor can no longer say.
struct TaskMarks {
  pid_t session = 0;              // the task's main process led it
  std::uint64_t start_ticks = 0;  // of the main process
  std::string environment;        // an entry that every process of the task inherits
  std::optional<Cgroup> cgroup;
};

// Members of the group, of the session, and whoever has the entry in its environment.
[[nodiscard]] std::vector<pid_t> remains_of(const TaskMarks& marks);

}  // namespace neap::local
