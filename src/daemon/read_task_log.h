// A part of the log of a task, from the files of its newest allocation.
#pragma once

#include <string>

#include "api/control.h"
#include "core/model/result.h"

namespace neap::daemon {

[[nodiscard]] Result<api::LogChunk> read_task_log(const std::string& directory,
                                                  api::LogRange range);

}  // namespace neap::daemon
