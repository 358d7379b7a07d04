// An HTTP/1.1 server on one listening socket: bounded in connections, memory, time and bodies;
// requests are answered by workers, streams of events are served by one thread, idle ones at no
// cost.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "api/http/message.h"
#include "api/http/socket.h"
#include "api/http/token.h"
#include "core/model/result.h"

namespace neap::api::http {

struct ListenerSettings {
  std::size_t requests_max = 256;  // under way or idle, beside the streams
  std::size_t streams_max = 1024;
  std::size_t body_max = std::size_t{1} << 20;
  std::size_t header_max = 32 * 1024;
  std::size_t stream_pending_max = 256 * 1024;
  std::size_t workers = 4;
  std::chrono::seconds idle_timeout{30};    // without a byte
  std::chrono::seconds upload_timeout{30};  // from the first byte of a request to its last
  std::chrono::milliseconds heartbeat{15'000};
  std::optional<Token> token;  // asked of every request; without one peers are local
};

class Listener {
 public:
  // `handler` is called on several threads at a time, until the listener is gone.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> start(Socket socket,
                                                               ListenerSettings settings,
                                                               Handler handler);
  // Answers what is under way, ends the streams, closes the socket.
  virtual ~Listener() = default;
  [[nodiscard]] virtual std::size_t streams() const = 0;
};

}  // namespace neap::api::http
