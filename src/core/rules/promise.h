// The latest start that is promised to a task (SPEC D6, POLICIES 4; docs/decisions/0016 has the
// derivation). With f the time at which it is forced, X = P + I + k + tau and what it takes to stop
// whoever does not leave, g devices, and B the devices that are certainly busy while any of those
// up to it is first and finds no room:
//
//   start <= f + T_r + sum ahead g X / B       and       start <= f + T_r + sum ahead X
//
// whichever is earlier. Ahead are all to whom a start is promised and who are forced before it,
// those who were started in the lane and are there yet, and what the envelopes of tiers with a
// shorter wait let come.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/state.h"

namespace neap {

struct Promise {
  BoundCode code{};
  Time forced_at = Time::never();
  Time start_by = Time::never();
  std::int64_t ahead = 0;
};
// For a training task that waits and was not judged yet. A start is promised only if every promise
// that was made stays true.
[[nodiscard]] Promise promise_for(const PoolState& state, const TaskState& task);

// Whether the lane would carry it, were it empty, and the devices of it that are certainly busy
// while it finds no room there: not C - g + 1, as the free ones may be on several nodes. 0: nothing
// is certain, as when it is the host that is short.
struct LaneFit {
  bool fits = false;
  std::int64_t busy = 0;
};
[[nodiscard]] LaneFit fit_in_lane(const PoolState& state, const std::vector<NodeId>& lane,
                                  const Shape& shape);

}  // namespace neap
