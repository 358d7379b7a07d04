#include "backend/local/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace neap::local {
namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::permission_denied;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::exhausted;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

Error system_error(std::string_view action, std::string_view path) {
  const int error = errno;
  std::string message(action);
  message.append(" ").append(path).append(": ").append(std::strerror(error));
  return Error{code_of(error), std::move(message), {}};
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<void> write_durably(const std::string& path, std::string_view content, mode_t mode) {
  const std::string aside = path + ".new";
  Fd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file.valid()) return tl::unexpected(system_error("open", aside));
  if (!write_all(file.get(), content)) return tl::unexpected(system_error("write", aside));
  if (::fsync(file.get()) != 0) return tl::unexpected(system_error("fsync", aside));
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    return tl::unexpected(system_error("rename", aside));
  }
  return sync_directory(parent_of(path));
}

Result<std::string> read_bounded(const std::string& path, std::size_t limit) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return tl::unexpected(system_error("open", path));
  std::string content;
  char chunk[8192];
  for (;;) {
    const ssize_t n = ::read(file.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(system_error("read", path));
    if (n == 0) return content;
    content.append(chunk, static_cast<std::size_t>(n));
    if (content.size() > limit) {
      return fail(ErrorCode::too_large,
                  path + " is larger than " + std::to_string(limit) + " bytes");
    }
  }
}

Result<void> sync_directory(const std::string& path) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return tl::unexpected(system_error("open", path));
  if (::fsync(directory.get()) != 0) return tl::unexpected(system_error("fsync", path));
  return {};
}

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) {
    // Not left to the umask: the submitter must be able to pass through to the socket.
    if (::chmod(path.c_str(), mode) != 0) return tl::unexpected(system_error("chmod", path));
    return {};
  }
  if (errno != EEXIST) return tl::unexpected(system_error("mkdir", path));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return fail(ErrorCode::conflict, path + " exists and is not a directory");
}

}  // namespace neap::local
