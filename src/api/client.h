// The API from the caller's side, over the UNIX socket or TCP. Answers are the bodies as they
// came (docs/operators/api.md describes them); errors are what the daemon said.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/model/result.h"

namespace neap::api {

struct Endpoint {
  std::string socket;  // path; or
  std::string url;     // "http://127.0.0.1:7433", with
  std::string token;   // its bearer token
  [[nodiscard]] const std::string& shown() const { return socket.empty() ? url : socket; }
};

// One event of a stream.
struct StreamEvent {
  std::string id;
  std::string name;
  std::string data;
};

enum class Next { more, stop };

class Client {
 public:
  explicit Client(Endpoint endpoint);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // unavailable when no daemon answers.
  [[nodiscard]] Result<std::string> get(std::string_view path);
  [[nodiscard]] Result<std::string> post(std::string_view path, std::string_view json);
  [[nodiscard]] Result<std::string> remove(std::string_view path);
  // Calls `on_event` for each event until it says stop or the daemon ends the stream. A stream
  // without a byte for 60 s (heartbeats come every 15 s) fails as unavailable.
  [[nodiscard]] Result<void> follow(std::string_view path,
                                    const std::function<Next(const StreamEvent&)>& on_event);
  void set_timeout(std::chrono::milliseconds timeout);  // of all but follow; 30 s at first

  // `text` as a part of a path or query.
  [[nodiscard]] static std::string escaped(std::string_view text);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// Splits a stream into events, as its bytes come.
class EventReader {
 public:
  // Feeds bytes; `on_event` is called for each event that is complete.
  Next feed(std::string_view bytes, const std::function<Next(const StreamEvent&)>& on_event);
  // True when a line is longer than any event that the daemon sends.
  [[nodiscard]] bool overlong() const { return line_.size() > line_max; }

  static constexpr std::size_t line_max = std::size_t{4} << 20;

 private:
  Next take_line(const std::function<Next(const StreamEvent&)>& on_event);

  std::string line_;
  StreamEvent event_;
  bool started_ = false;
};

// The error in a body of the daemon's, or a plain one by the status.
[[nodiscard]] Error error_of(long status, const std::string& body);

}  // namespace neap::api
