#include "daemon/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace neap::daemon {

namespace {

// A UNIX socket's path has at most 107 bytes, and below lies run/tasks/NUMBER/contract.sock.
constexpr std::size_t path_max = 64;

tl::unexpected<Error> unusable(ErrorCode code, std::string why, const std::string& path) {
  return fail(code, "cannot be the state folder: " + std::move(why), path);
}

Result<void> make(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return unusable(ErrorCode::permission_denied, error.message(), path);
  // Others may pass through to what is theirs (the contract sockets), and see nothing else.
  if (::chmod(path.c_str(), 0711) != 0) {
    return unusable(ErrorCode::permission_denied, std::strerror(errno), path);
  }
  return {};
}

}  // namespace

Result<void> prepare_state_dir(const std::string& path) {
  if (path.size() > path_max) {
    return unusable(ErrorCode::invalid_argument,
                    "its path is longer than the " + std::to_string(path_max) +
                        " bytes that the sockets below it leave",
                    path);
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return make(path);
  if (!S_ISDIR(info.st_mode)) return unusable(ErrorCode::conflict, "it is no folder", path);
  if (info.st_uid != ::geteuid()) {
    return unusable(ErrorCode::permission_denied,
                    "it belongs to user " + std::to_string(info.st_uid) + ", not to us", path);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return unusable(ErrorCode::permission_denied, "others may write to it", path);
  }
  if (::geteuid() == 0 && (info.st_mode & S_IXOTH) == 0) {
    return unusable(ErrorCode::permission_denied,
                    "tasks of other users cannot pass through it to their sockets (chmod o+x)",
                    path);
  }
  if (::access(path.c_str(), W_OK) != 0) {
    return unusable(ErrorCode::permission_denied, std::strerror(errno), path);
  }
  return {};
}

}  // namespace neap::daemon
