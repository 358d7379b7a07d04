#include "api/testing/raw_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace neap::api::testing {

namespace {
constexpr int patience_ms = 5000;
}

RawConnection::RawConnection(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawConnection::read_until(std::string_view needle) {
  std::string all;
  while (needle.empty() || all.find(needle) == std::string::npos) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, patience_ms) <= 0) return all;
    char block[4096];
    const ssize_t got = ::recv(fd_, block, sizeof block, 0);
    if (got <= 0) {
      ended_ = true;
      return all;
    }
    all.append(block, static_cast<std::size_t>(got));
  }
  return all;
}

bool RawConnection::closed() {
  read_to_end();
  return ended_;
}

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/neap-api-XXXXXX";
  if (const char* made = ::mkdtemp(name)) path_ = made;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace neap::api::testing
