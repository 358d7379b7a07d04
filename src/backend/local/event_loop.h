// epoll and timers for one thread; handlers run on the thread that calls run().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "backend/local/fd.h"
#include "core/model/units.h"

namespace neap::local {

class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  struct TimerId {
    Time due;
    std::uint64_t number = 0;
    auto operator<=>(const TimerId&) const = default;
  };

  EventLoop();

  // `events` are EPOLLIN and EPOLLOUT. A handler may forget any descriptor, its own too.
  void watch(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  // Before the descriptor is closed.
  void forget(int fd);

  TimerId after(Micros delay, std::function<void()> handler);
  void cancel(TimerId timer);

  // Handles what is due, waiting for it at most `longest`.
  void run_once(Micros longest = Micros::max());
  void run();  // until stop()
  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  struct Watched {
    std::uint32_t generation = 0;
    std::shared_ptr<Handler> handler;  // kept alive while it runs, even if forgotten
  };

  void run_timers();

  Fd epoll_;
  std::unordered_map<int, Watched> watched_;
  std::map<TimerId, std::function<void()>> timers_;
  std::uint64_t next_timer_ = 1;
  std::uint32_t next_generation_ = 1;
  bool stopped_ = false;
};

}  // namespace neap::local
