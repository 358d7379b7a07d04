// One stream of server-sent events on its way to a reader. Senders never wait: what the reader
// has not taken yet is kept up to a bound, and a reader that falls behind it is cut off.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace neap::api::http {

class Stream {
 public:
  // How the stream reaches the connection; called with the stream's lock held.
  struct Line {
    std::function<void()> suspend;  // on the connection's own thread
    std::function<void()> resume;   // on any thread, after suspend
    std::function<void()> cut;      // on any thread: no byte more
  };

  Stream(std::size_t pending_max, Line line);

  // Bytes in the format of event streams. False when the reader has gone or was cut off.
  bool send(std::string_view bytes);
  // The response ends after what was sent before.
  void finish();
  [[nodiscard]] bool open() const;
  [[nodiscard]] std::size_t pending() const;

  // For the connection: takes what is there into `into`. When there is nothing it suspends.
  enum class Taken { bytes, nothing, end, broken };
  struct Take {
    Taken what;
    std::size_t count;
  };
  Take take(char* into, std::size_t max);
  // For the connection: it is gone, and no Line function may be called again.
  void disconnect();

 private:
  void wake();

  mutable std::mutex mutex_;
  const std::size_t pending_max_;
  Line line_;
  std::string pending_;
  std::size_t taken_ = 0;  // bytes of pending_ that the reader has
  bool suspended_ = false;
  bool finished_ = false;
  bool overrun_ = false;
  bool gone_ = false;
};

// One event: "id: 7\nevent: log\ndata: {...}\n\n". `data` holds no line break.
[[nodiscard]] std::string event_text(std::string_view id, std::string_view name,
                                     std::string_view data);

}  // namespace neap::api::http
