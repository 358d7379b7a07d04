// Bodies of requests, from strict JSON: no unknown field, no key twice, no deep nesting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/control.h"
#include "core/model/result.h"

namespace neap::api {

// {"file": "job.yaml", "text": "task: ...", "workdir": "/jobs/a", "replace": false}
struct Submission {
  std::string file;     // named in errors
  std::string text;     // the task file, YAML
  std::string workdir;  // absolute; relative paths of the file start there
  enum class Kind : std::uint8_t { fresh, version };
  Kind kind = Kind::fresh;  // version: of the service that lives, if one does
};

// invalid_argument, with the field as context.
[[nodiscard]] Result<Submission> decode_submission(std::string_view body);
// {"min": 1, "max": 4}, either or both.
[[nodiscard]] Result<Scale> decode_scale(std::string_view body);
// {"reason": "..."} or nothing.
[[nodiscard]] Result<std::string> decode_pause(std::string_view body);

// {"to": "memory", "why": "...", "force": true}; `to` alone is needed.
[[nodiscard]] Result<StageChange> decode_stage_change(std::string_view body);

}  // namespace neap::api
