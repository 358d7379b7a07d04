// What a request allows, read from the state by the plainest means: every device and every task
// is looked at, and nothing of rules/ or of an index is used. For properties of placement.
#pragma once

#include <string>
#include <vector>

#include "core/model/state.h"

namespace neap::testing {

// Empty when these slots are what the shape may have now; otherwise what is wrong with them.
[[nodiscard]] std::string fault_of(const PoolState& state, const Shape& shape,
                                   const std::vector<Slot>& slots);

// Whether there is any way to place it now.
[[nodiscard]] bool can_be_placed(const PoolState& state, const Shape& shape);

}  // namespace neap::testing
