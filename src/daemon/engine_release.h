// Before a replica goes, its engine gives the device's memory back (C3): what nobody uses when it
// leaves the gateway, all the rest once its requests are answered. A replica is stopped whatever
// came of that, at most a few seconds later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/model/events.h"
#include "engine/engine.h"

namespace neap::daemon {

struct LeavingReplica {
  AllocationId allocation;
  engine::Kind kind = engine::Kind::none;
  std::uint16_t port = 0;
};

class EngineRelease {
 public:
  using Stop = std::function<void(const StopTask&)>;

  static constexpr std::size_t waiting_max = 256;  // beyond, replicas are stopped at once
  static constexpr std::chrono::milliseconds longest_wait{3000};  // for its turn

  // `stop` is called on the thread of this object, or of whoever calls stop_after().
  explicit EngineRelease(Stop stop);
  // What still waits is stopped without a word to its engine.
  ~EngineRelease();
  EngineRelease(const EngineRelease&) = delete;
  EngineRelease& operator=(const EngineRelease&) = delete;

  // It gets no requests any more, and answers those it has. Returns at once.
  void drains(const LeavingReplica& replica);
  // It has none left, or no time. Returns at once; `stop` follows.
  void stop_after(const LeavingReplica& replica, const StopTask& action);

 private:
  struct Work {
    LeavingReplica replica;
    std::optional<StopTask> stop;  // none: it only begins to leave
    std::chrono::steady_clock::time_point queued;
  };

  void run();
  void carry_out(const Work& work);
  void push(Work work);

  Stop stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;  // guarded by mutex_
  bool ends_ = false;         // guarded by mutex_
  std::thread thread_;
};

}  // namespace neap::daemon
