// Where two states or two indexes differ, for whoever looks into a seed.
#pragma once

#include <string>

#include "core/model/state.h"

namespace neap::sim {

// The first part in which the states differ; empty when they are the same.
[[nodiscard]] std::string state_difference(const PoolState& a, const PoolState& b);
// The first part of the state's index that a rebuild makes otherwise.
[[nodiscard]] std::string index_difference(const PoolState& state);

}  // namespace neap::sim
