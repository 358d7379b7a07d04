// Bytes into text: reading a bounded file, and refusing what is not text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/problem.h"
#include "core/model/result.h"

namespace neap::config {

inline constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

// The file's text. Refused by its size before it is read; "-" is standard input.
// not_found, permission_denied, too_large (over `file_bytes_max`), invalid_argument (a folder).
[[nodiscard]] Result<std::string> read_file(const std::string& path);

[[nodiscard]] bool is_utf8(std::string_view text);
// True when the text is UTF-8 without control bytes, and not over `file_bytes_max`.
[[nodiscard]] bool check_text(std::string_view text, Problems& problems);

}  // namespace neap::config
