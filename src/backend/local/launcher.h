// Starting a supervisor so that the daemon is not its parent, and asking whether one is alive.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "backend/local/fd.h"
#include "backend/local/processes.h"
#include "backend/local/report.h"
#include "backend/local/spec.h"
#include "core/model/result.h"

namespace neap::local {

struct Launch {
  pid_t starter = 0;  // ends at once; to be waited for
  Fd word;            // one line: "ready", "running" or what failed; does not block
};

// Makes the directory and the spec durable, then starts the supervisor.
[[nodiscard]] Result<Launch> launch_supervisor(const std::string& executable,
                                               const std::string& directory,
                                               const SupervisedTask& task);

// The process that holds the allocation's lock.
[[nodiscard]] std::optional<pid_t> supervisor_of(const std::string& directory);
// Has the task of this directory ever been forked?
[[nodiscard]] bool was_started(const std::string& directory);

// What is known, from the files alone, of an allocation whose supervisor is gone.
struct Leftover {
  TaskMarks marks;
  std::optional<Exited> exit;  // of the main process, when the supervisor lived to see it
};
[[nodiscard]] Leftover read_leftover(const std::string& directory,
                                     const std::optional<SupervisedTask>& task);

}  // namespace neap::local
