#include "gateway/haproxy/port_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "posix/fd.h"

namespace neap::gateway {

Result<void> check_port_free(const std::string& address, std::uint16_t port) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const sockaddr* where = nullptr;
  socklen_t size = 0;
  if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    where = reinterpret_cast<const sockaddr*>(&v4);
    size = sizeof v4;
  } else if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    where = reinterpret_cast<const sockaddr*>(&v6);
    size = sizeof v6;
  } else {
    return fail(ErrorCode::invalid_argument, "expected a numeric address", "bind");
  }
  const posix::Fd fd(socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // connections of a former owner that only wait for their end do not count
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), where, size) == 0 && listen(fd.get(), 1) == 0) return {};
  const std::string what = address + " port " + std::to_string(port);
  if (errno == EADDRINUSE) {
    return fail(ErrorCode::conflict, what + " is in use by another process", "port");
  }
  if (errno == EACCES) {
    return fail(ErrorCode::permission_denied, what + " may not be bound by this user", "port");
  }
  return fail(ErrorCode::invalid_argument, what + " cannot be bound: " + std::strerror(errno),
              "bind");
}

}  // namespace neap::gateway
