// Sends the growing logs of tasks to those who follow them. One thread looks at all of them; a
// reader that does not keep up is simply read for more slowly.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/control.h"
#include "api/http/stream.h"

namespace neap::api {

class LogFeed {
 public:
  explicit LogFeed(Control& control,
                   std::chrono::milliseconds interval = std::chrono::milliseconds(200));
  LogFeed(const LogFeed&) = delete;
  LogFeed& operator=(const LogFeed&) = delete;
  ~LogFeed();

  // Events "log" {"text", "next_offset"} and, when the task has ended and all is sent, "end"
  // {"state", "exit_code"}. Offsets as in LogRange.
  void follow(std::uint64_t task, std::int64_t offset, std::shared_ptr<http::Stream> stream);

 private:
  struct Follower {
    std::uint64_t task = 0;
    std::int64_t offset = 0;
    std::shared_ptr<http::Stream> stream;
  };

  void run();
  // False when the follower is done.
  bool advance(Follower& follower);

  Control& control_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Follower> joining_;
  bool stopping_ = false;
  std::thread thread_;
};

// Removes the beginning of a character that is not all there from the end of `bytes`, and gives
// the number of bytes removed: the next reading begins with them.
[[nodiscard]] std::size_t drop_broken_end(std::string& bytes);

}  // namespace neap::api
