// Training is started a few at a time and one after another (SPEC D11), so that storage and network
// are not asked by all at once. Inference is never held back; a gang counts as one.
#pragma once

#include <string>

#include "core/model/state.h"

namespace neap {

// It would have to wait with its start, were there room for it now.
[[nodiscard]] bool is_held_back(const PoolState& state, const TaskState& task);
// When the next one may start at the latest, if nobody reports before.
[[nodiscard]] Time next_turn(const PoolState& state);
// By what, for its owner.
[[nodiscard]] std::string held_back_text(const PoolState& state);

// ---- for apply -------------------------------------------------------------------------------

void begin_loading(PoolState& state, TaskState& task);
void end_loading(PoolState& state, TaskState& task);
// Who was held back is looked at again.
void mark_held_back(PoolState& state);

}  // namespace neap
