// The daemon's API: REST and server-sent events over a UNIX socket and, when asked for, TCP.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/control.h"
#include "api/event_hub.h"
#include "core/model/result.h"

namespace neap::api {

struct TcpSettings {
  std::string listen = "127.0.0.1:7433";  // address:port
  std::string token_file;                 // mode 0600, at least 32 characters on one line
};

struct ServerSettings {
  std::string socket_path;
  std::string group;  // empty: the socket is for its owner and root (0600), else 0660
  std::optional<TcpSettings> tcp;
  std::int64_t streams_max = 1024;
  std::int64_t body_max_bytes = 1 << 20;
  std::int64_t workers = 4;
};

class Server {
 public:
  // Listens before it returns. `control` and `hub` must outlive the server.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const ServerSettings& settings,
                                                             Control& control, EventHub& hub);
  virtual ~Server() = default;  // stops: streams are ended, requests under way answered
  [[nodiscard]] virtual std::uint16_t tcp_port() const = 0;  // 0 without TCP
};

}  // namespace neap::api
