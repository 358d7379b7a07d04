// A new version of a live service is loaded while the old one serves (SPEC C4, S8;
// docs/decisions/0019). One replica more than are wanted is there at a time: it is placed beside
// the old ones, so what both need is held before it starts; when it is healthy an old one leaves.
#pragma once

#include <optional>
#include <vector>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

// A version that came while no replica was there: nothing serves that it could take over from. Load
// moves its replicas as ever; the first that gets healthy proves it, the first that fails gives it
// up for the one before.
[[nodiscard]] inline bool is_untried(const ServiceState& service) {
  return service.roll && service.roll->phase == RollPhase::forward && service.roll->wanted == 0;
}

struct RollStep {
  enum class Add : std::uint8_t { none, one };
  Add add = Add::none;
  std::vector<TaskId> remove;
  std::optional<ServiceRolled> ends;
};
// Precondition: the service rolls and was not removed. Nothing happens in a pause.
[[nodiscard]] RollStep roll_step(const PoolState& state, const ServiceState& service);

}  // namespace neap
