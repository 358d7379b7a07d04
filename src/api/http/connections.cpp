#include "api/http/connections.h"

#include <sys/socket.h>

namespace neap::api::http {

bool Connections::opened(int fd, std::optional<std::uint32_t> uid, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  connections_[fd] = {uid, now};
  if (!uid) return true;
  const std::size_t held = ++held_[*uid];
  return held <= share_ || *uid == administrator_ || *uid == 0;
}

void Connections::request_came(int fd) {
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(fd); found != connections_.end()) {
    found->second.waits_since.reset();
  }
}

void Connections::request_ended(int fd, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(fd); found != connections_.end()) {
    found->second.waits_since = now;
  }
}

void Connections::closed(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  if (const auto uid = found->second.uid) {
    if (--held_[*uid] == 0) held_.erase(*uid);
  }
  connections_.erase(found);
}

// Under the lock: closed() comes before the descriptor is, so none is another's by now.
void Connections::shut_overdue(Clock::time_point since) {
  const std::lock_guard lock(mutex_);
  for (const auto& [fd, connection] : connections_) {
    if (connection.waits_since && *connection.waits_since < since) ::shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace neap::api::http
