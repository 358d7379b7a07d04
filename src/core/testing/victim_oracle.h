// What find_victims() must find, by trying every set of victims: for pools of few tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/rules/preempt.h"

namespace neap::testing {

// Whether the demand can be placed once these tasks have gone: on one node, or as a gang.
[[nodiscard]] bool accepts(const PoolState& state, const Shape& demand,
                           const std::vector<TaskId>& gone);

// The least cost of a set that accepts() takes, without killing or, when there is none and the
// pool allows it, with.
[[nodiscard]] std::optional<std::int64_t> least_cost(const PoolState& state, const Shape& demand,
                                                     Time now, Time needed_by);

}  // namespace neap::testing
