// How a figure outside its range is refused.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/result.h"

namespace neap::lead_time {

[[nodiscard]] inline tl::unexpected<Error> wrong(const char* field, const std::string& expected,
                                                 std::int64_t value) {
  return fail(ErrorCode::invalid_argument,
              "expected " + expected + ", not " + std::to_string(value), field);
}

}  // namespace neap::lead_time
