// Follows a task's log over restarts of the daemon: the task goes on, and so does its log.
#pragma once

#include <cstdint>
#include <string>

#include "cli/context.h"

namespace neap::cli {

struct Ending {
  std::string state;
  std::int64_t exit_code = -1;
};

// Prints from `offset` (negative: from the end) until the task has ended.
[[nodiscard]] Result<Ending> follow_log(const Context& context, const std::string& task,
                                        std::int64_t offset);

// What a shell expects of a command that ended so: its own code, 1 when that is not known,
// 130 when it was cancelled.
[[nodiscard]] int exit_code_of(const Ending& ending);

}  // namespace neap::cli
