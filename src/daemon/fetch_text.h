// A bounded GET from a server on the loopback interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/model/result.h"

namespace neap::daemon {

// The body of an answer with status 200. unavailable: no such answer within `patience`;
// too_large: over `bytes_max`. Blocks.
[[nodiscard]] Result<std::string> fetch_text(std::uint16_t port, const std::string& path,
                                             std::size_t bytes_max,
                                             std::chrono::milliseconds patience);

}  // namespace neap::daemon
