// Files that are whole or absent: written aside, fsynced, renamed, directory fsynced.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "backend/local/fd.h"
#include "core/model/result.h"

namespace neap::local {

// "open /x/y: No such file or directory", with the errno of the moment of the call.
[[nodiscard]] Error system_error(std::string_view action, std::string_view path);

[[nodiscard]] Result<void> write_durably(const std::string& path, std::string_view content,
                                         mode_t mode);
// Fails with too_large beyond `limit` bytes.
[[nodiscard]] Result<std::string> read_bounded(const std::string& path, std::size_t limit);
[[nodiscard]] Result<void> sync_directory(const std::string& path);
// Creates the directory when it is not there; an existing one keeps its mode.
[[nodiscard]] Result<void> make_directory(const std::string& path, mode_t mode);
// All of `content`, retrying short writes.
[[nodiscard]] bool write_all(int fd, std::string_view content);

}  // namespace neap::local
