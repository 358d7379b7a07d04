// Learns placement's table from the demand beside the loop, and hands it in as an event. At its end
// a lesson that is running stops, and nothing is posted any more.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap::daemon {

class PlacementLearner {
 public:
  explicit PlacementLearner(std::function<void(Event)> post) : post_(std::move(post)) {}

  // On the loop's thread, with every record: starts to learn when it is due.
  void note(const PoolState& state);

 private:
  [[nodiscard]] bool is_awaited(const PoolState& state) const;

  std::function<void(Event)> post_;
  std::int64_t looked_at_ = 0;  // demand seen when a lesson was last looked for
  std::int64_t begun_at_ = 0;   // and when one last began
  std::jthread thread_;
};

}  // namespace neap::daemon
