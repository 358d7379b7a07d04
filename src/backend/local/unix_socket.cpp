#include "backend/local/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

Result<sockaddr_un> socket_address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > socket_path_limit) {
    return fail(ErrorCode::invalid_argument,
                path + ": a socket's path has at most 107 bytes; use a shorter run directory");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Result<Fd> listen_on(const std::string& path, std::optional<SocketOwner> owner) {
  const auto address = socket_address_of(path);
  if (!address) return tl::unexpected(address.error());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return tl::unexpected(system_error("socket", path));
  (void)::unlink(path.c_str());
  // The file is made with the final mode: there is no moment at which others may connect.
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  ::umask(before);
  if (bound != 0) return tl::unexpected(system_error("bind", path));
  if (owner && (owner->uid != ::geteuid() || owner->gid != ::getegid()) &&
      ::lchown(path.c_str(), owner->uid, owner->gid) != 0) {
    return tl::unexpected(system_error("chown", path));
  }
  if (::listen(fd.get(), 16) != 0) return tl::unexpected(system_error("listen", path));
  return fd;
}

Result<Fd> connect_to(const std::string& path) {
  const auto address = socket_address_of(path);
  if (!address) return tl::unexpected(address.error());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return tl::unexpected(system_error("socket", path));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return tl::unexpected(system_error("connect", path));
  }
  return fd;
}

std::optional<uid_t> peer_uid(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.uid;
}

Outbox::State Outbox::flush(int fd) {
  while (sent_ < bytes_.size()) {
    const ssize_t n = ::send(fd, bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::waiting;
    if (n < 0) return State::broken;
    sent_ += static_cast<std::size_t>(n);
  }
  bytes_.clear();
  sent_ = 0;
  return State::drained;
}

std::optional<std::string> receive_some(int fd) {
  std::string bytes(64 * 1024, '\0');
  for (;;) {
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::string();
    if (n <= 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(n));
    return bytes;
  }
}

}  // namespace neap::local
