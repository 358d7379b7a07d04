// A web server and a client of a few lines, for tests on the loopback interface.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "posix/fd.h"

namespace neap::posix {

// Answers by path, whatever the method:
//   /CHUNKS/GAP_MS  that many server-sent events ("data: x"), the gap before each
//   /cut/CHUNKS     as many events, then the connection breaks
//   /status/CODE    that status, an empty body; Retry-After: 3 with 429
//   /keep/COUNT     a body of 7 completion tokens, so many times on one connection; the request
//                   after that gets no answer, and the connection is closed
//   /metrics        what set_metrics was given
//   /gate           an event; then, after release(), another and the end
//   /hang           nothing
class TinyServer {
 public:
  TinyServer();
  ~TinyServer();
  TinyServer(const TinyServer&) = delete;
  TinyServer& operator=(const TinyServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int served() const { return served_; }
  void release();
  void set_metrics(std::string text);
  [[nodiscard]] int most_at_once() const { return most_at_once_; }

 private:
  void accept_all();
  void serve(int fd);
  bool answer(int fd, const std::string& path);

  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> served_ = 0;
  std::atomic<int> at_once_ = 0;
  std::atomic<int> most_at_once_ = 0;
  std::atomic<bool> closing_ = false;
  std::mutex mutex_;
  std::condition_variable released_;
  bool open_ = false;                     // guarded by mutex_
  std::string metrics_;                   // guarded by mutex_
  std::vector<std::thread> connections_;  // guarded by mutex_
  std::thread accepting_;
};

struct TinyResponse {
  int status = 0;      // 0: no answer
  bool whole = false;  // the last chunk came
  int chunks = 0;
};

[[nodiscard]] TinyResponse tiny_get(std::uint16_t port, const std::string& path);
// A port that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

}  // namespace neap::posix
