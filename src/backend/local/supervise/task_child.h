// The task's main process, from fork to exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "backend/local/cgroup.h"
#include "backend/local/fd.h"
#include "backend/local/spec.h"
#include "core/model/result.h"

namespace neap::local {

// A child that has been forked and waits for release() before it execs, so that its pid can be
// made durable first. When the supervisor dies before that, the child ends.
struct TaskChild {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  Fd output;   // its standard output and error, not blocking
  Fd failure;  // closes at a successful exec, else says what failed, not blocking
  Fd gate;     // release() writes to it

  void release();
};

[[nodiscard]] Result<TaskChild> fork_task(const SupervisedTask& task, const std::string& socket,
                                          const Cgroup* group);

}  // namespace neap::local
