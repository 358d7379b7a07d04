// Deadlines (SPEC D6, POLICIES 4): accepted at submission only when they can be kept, and kept by
// going on in another tier when they come near.
#pragma once

#include <optional>

#include "core/model/state.h"

namespace neap {

// The wait that forecasts expect for this tier; 0 until they said so.
[[nodiscard]] Micros expected_wait(const PoolState& state, TierId tier);

// Accepted when now + W + R + the expected wait is not after it.
[[nodiscard]] DeadlineVerdict judge_deadline(const PoolState& state, const TaskState& task);

// Where tasks go on that are near their deadline.
[[nodiscard]] std::optional<TierId> deadline_tier(const PoolState& state);
// The tier that its owner asked for.
[[nodiscard]] TierId own_tier(const PoolState& state, const TaskState& task);

// When no more is left than max(W / 5, 30 min) beside W, R and the expected wait. Never: it has no
// accepted deadline, or its work is not known any more.
[[nodiscard]] Time near_deadline_at(const PoolState& state, const TaskState& task);
// Later than this it cannot be kept.
[[nodiscard]] Time latest_start(const PoolState& state, const TaskState& task);
[[nodiscard]] bool can_keep_deadline(const PoolState& state, const TaskState& task);

// Whether its team may have this task in the tier of deadlines beside those that it has there: a
// part of what the team asks for in all, and one task always.
[[nodiscard]] bool may_be_promoted(const PoolState& state, const TaskState& task);

}  // namespace neap
