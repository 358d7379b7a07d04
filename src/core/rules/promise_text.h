// What a task is told of the start that is promised to it, and of its deadline (SPEC F6, D6).
#pragma once

#include <string>

#include "core/model/state.h"

namespace neap {

// One sentence; empty for what does not wait, and for replicas.
[[nodiscard]] std::string promise_text(const PoolState& state, const TaskState& task);

// Why its deadline was not accepted; empty where it was, or it has none.
[[nodiscard]] std::string deadline_text(const PoolState& state, const TaskState& task);

}  // namespace neap
