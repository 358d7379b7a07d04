// New events, from the loop to everybody who follows. The loop pushes and never waits:
// a follower that comes late reads what came before from the journal (Control::events_after).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "api/view.h"

namespace neap::api {

class EventHub {
 public:
  // A listener is called on the loop's thread with each batch: it must return at once.
  using Listener = std::function<void(std::span<const EventRow>)>;

  // Called by the loop after a batch is durable; sequences rise.
  void push(std::span<const EventRow> batch);

  [[nodiscard]] std::uint64_t listen(Listener listener);
  // After this returns the listener is not called again.
  void forget(std::uint64_t listener);

 private:
  std::mutex mutex_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Listener> listeners_;
};

}  // namespace neap::api
