// SHA-256 (FIPS 180-4), for keys that are stored as their digests.
#pragma once

#include <string>
#include <string_view>

namespace neap::config {

[[nodiscard]] std::string sha256_hex(std::string_view bytes);  // 64 of 0-9a-f

}  // namespace neap::config
