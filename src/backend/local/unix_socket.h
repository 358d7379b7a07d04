// UNIX stream sockets that do not block, and who is at the other end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "backend/local/fd.h"
#include "core/model/result.h"

namespace neap::local {

struct SocketOwner {
  uid_t uid = 0;
  gid_t gid = 0;
};

inline constexpr std::size_t socket_path_limit = 107;

// Mode 0600. Given an owner, the socket file is made his.
[[nodiscard]] Result<Fd> listen_on(const std::string& path, std::optional<SocketOwner> owner);
[[nodiscard]] Result<Fd> connect_to(const std::string& path);
[[nodiscard]] std::optional<uid_t> peer_uid(int fd);

// What waits to be sent; bounded by who fills it.
class Outbox {
 public:
  enum class State { drained, waiting, broken };

  void push(std::string_view bytes) { bytes_.append(bytes); }
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  State flush(int fd);

 private:
  std::string bytes_;
  std::size_t sent_ = 0;
};

// Up to 64 KiB that are there now. nullopt: the other end is gone; empty: nothing yet.
[[nodiscard]] std::optional<std::string> receive_some(int fd);

}  // namespace neap::local
