#include "api/http/socket.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace neap::api::http {

namespace {

constexpr int backlog = 512;

Error system_error(const std::string& what, const std::string& where) {
  const int number = errno;
  const ErrorCode code =
      number == EACCES || number == EPERM ? ErrorCode::permission_denied : ErrorCode::unavailable;
  return {code, what + ": " + std::strerror(number), where};
}

bool somebody_answers(const sockaddr_un& address) {
  const Socket probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Result<void> share_with_group(const std::string& path, const std::string& group) {
  char space[16 * 1024];
  struct group entry {};
  struct group* found = nullptr;
  ::getgrnam_r(group.c_str(), &entry, space, sizeof space, &found);
  if (found == nullptr)
    return fail(ErrorCode::not_found, "no group is called " + group, "api.group");
  if (::chown(path.c_str(), static_cast<uid_t>(-1), found->gr_gid) != 0 ||
      ::chmod(path.c_str(), 0660) != 0) {
    return tl::unexpected(system_error("cannot be given to group " + group, path));
  }
  return {};
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Socket> listen_unix(const std::string& path, const std::string& group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_argument,
                "is longer than " + std::to_string(sizeof address.sun_path - 1) +
                    " bytes, the limit of UNIX sockets",
                path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Linux gives the file the mode that the socket has when it is bound: no moment is open.
  if (socket.get() < 0 || ::fchmod(socket.get(), 0600) != 0) {
    return tl::unexpected(system_error("no socket", path));
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return fail(ErrorCode::conflict, "is there and is no socket", path);
    }
    if (somebody_answers(address)) {
      return fail(ErrorCode::conflict, "another daemon answers on this socket", path);
    }
    ::unlink(path.c_str());
  }
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return tl::unexpected(system_error("cannot be bound", path));
  }
  if (!group.empty()) {
    if (auto shared = share_with_group(path, group); !shared) {
      ::unlink(path.c_str());
      return tl::unexpected(shared.error());
    }
  }
  if (::listen(socket.get(), backlog) != 0) {
    return tl::unexpected(system_error("cannot listen", path));
  }
  return socket;
}

Result<Socket> listen_tcp(const std::string& address_and_port) {
  const std::size_t colon = address_and_port.rfind(':');
  if (colon == std::string::npos) {
    return fail(ErrorCode::invalid_argument, "expected address:port", "api.tcp.listen");
  }
  std::string host = address_and_port.substr(0, colon);
  const std::string port = address_and_port.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &raw) != 0) {
    return fail(ErrorCode::invalid_argument, address_and_port + " is no numeric address and port",
                "api.tcp.listen");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (socket.get() < 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    return tl::unexpected(system_error("cannot listen", address_and_port));
  }
  return socket;
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

}  // namespace neap::api::http
