// Listening sockets of the API.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/result.h"

namespace neap::api::http {

// A descriptor that is closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

// Mode 0600, or 0660 with `group` when that is not empty; never wider, not for a moment. A socket
// that nobody answers on is replaced. conflict: somebody answers; not_found: no such group;
// invalid_argument: longer than 107 bytes.
[[nodiscard]] Result<Socket> listen_unix(const std::string& path, const std::string& group);

// "127.0.0.1:7433" or "[::1]:7433"; port 0 takes a free one.
[[nodiscard]] Result<Socket> listen_tcp(const std::string& address_and_port);
[[nodiscard]] std::uint16_t port_of(const Socket& socket);

}  // namespace neap::api::http
