#include "backend/local/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <utility>

namespace neap::local {
namespace {

bool is_free(std::int32_t port) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd.valid() &&
         ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The name of a port's reservation among all pools of this machine: an abstract socket, which ends
// with the daemon that holds it. Invalid when another one has it.
Fd claim_of(std::int32_t port) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "neap-port-" + std::to_string(port);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return {};
  }
  return fd;
}

}  // namespace

Result<std::int32_t> LoopbackPorts::take() {
  const std::lock_guard lock(mutex_);
  for (std::int32_t tries = 0; tries <= last_port - first_port; ++tries) {
    const std::int32_t port = next_;
    next_ = next_ == last_port ? first_port : next_ + 1;
    if (taken_.contains(port)) continue;
    // Claimed before it is looked at: a replica binds its port only a while after it was chosen.
    Fd claim = claim_of(port);
    if (!claim.valid() || !is_free(port)) continue;
    taken_.emplace(port, std::move(claim));
    return port;
  }
  return fail(ErrorCode::exhausted, "no free port from 20000 to 29999 on 127.0.0.1");
}

void LoopbackPorts::reserve(std::int32_t port) {
  const std::lock_guard lock(mutex_);
  taken_.emplace(port, claim_of(port));
}

void LoopbackPorts::give_back(std::int32_t port) {
  const std::lock_guard lock(mutex_);
  taken_.erase(port);
}

}  // namespace neap::local
