// The one shape of an error on the wire:
//   {"error": {"code": "invalid_argument", "message": "...", "field": "task.gpus",
//              "file": "job.yaml", "line": 4},
//    "problems": [{"field": ..., "file": ..., "line": ..., "message": ...}, ...]}
// field, file and line are there when they are known; problems when a file was read.
#pragma once

#include <string>

#include "config/problem.h"
#include "core/model/result.h"

namespace neap::api {

[[nodiscard]] std::string error_body(const Error& error);
// All faults of a file, the first of them as the error.
[[nodiscard]] std::string error_body(const config::Problems& problems);

}  // namespace neap::api
