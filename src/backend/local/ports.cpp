#include "backend/local/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "backend/local/fd.h"

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

}  // namespace

Result<std::int32_t> LoopbackPorts::take() {
  const std::lock_guard lock(mutex_);
  for (std::int32_t tries = 0; tries <= last_port - first_port; ++tries) {
    const std::int32_t port = next_;
    next_ = next_ == last_port ? first_port : next_ + 1;
    if (taken_.contains(port) || !is_free(port)) continue;
    taken_.insert(port);
    return port;
  }
  return fail(ErrorCode::exhausted, "no free port from 20000 to 29999 on 127.0.0.1");
}

void LoopbackPorts::reserve(std::int32_t port) {
  const std::lock_guard lock(mutex_);
  taken_.insert(port);
}

void LoopbackPorts::give_back(std::int32_t port) {
  const std::lock_guard lock(mutex_);
  taken_.erase(port);
}

}  // namespace neap::local
