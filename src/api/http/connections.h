// The connections of a listener: how many one user holds, and who takes too long over a request.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace neap::api::http {

class Connections {
 public:
  using Clock = std::chrono::steady_clock;

  // A user may hold `share` connections, the one who administers (and root) any number.
  Connections(std::size_t share, std::uint32_t administrator)
      : share_(share), administrator_(administrator) {}

  // False when this user holds his share already: the connection is to be closed.
  bool opened(int fd, std::optional<std::uint32_t> uid, Clock::time_point now);
  // The headers of a request are whole: what follows is bounded elsewhere.
  void request_came(int fd);
  // Its answer is on the way: the next request may come.
  void request_ended(int fd, Clock::time_point now);
  void closed(int fd);

  // Shuts down those that have waited for whole headers since before `since`.
  void shut_overdue(Clock::time_point since);

 private:
  struct Connection {
    std::optional<std::uint32_t> uid;
    std::optional<Clock::time_point> waits_since;
  };

  const std::size_t share_;
  const std::uint32_t administrator_;
  std::mutex mutex_;
  std::map<int, Connection> connections_;
  std::map<std::uint32_t, std::size_t> held_;
};

}  // namespace neap::api::http
