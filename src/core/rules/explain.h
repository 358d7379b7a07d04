// Why a task waits, its place in the queue, and the smallest change that would start it (SPEC F6).
#pragma once

#include <string>
#include <vector>

#include "core/model/state.h"

namespace neap {

// The current reason of a waiting task; none for one that does not wait. Constant time.
[[nodiscard]] WaitCode wait_code_of(const PoolState& state, const TaskState& task);

// 1 = next. Counts all that wait and could start, in order of tier, submission, id.
[[nodiscard]] std::int64_t place_in_queue(const PoolState& state, const TaskState& task);

// One sentence with the numbers of this moment.
[[nodiscard]] std::string explain_wait(const PoolState& state, const TaskState& task);

}  // namespace neap
