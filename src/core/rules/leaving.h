// Devices that tasks are leaving already: yielding, draining or being stopped. A demand that fits
// there once they are gone waits for them, and nobody else is asked to yield.
#pragma once

#include <optional>

#include "core/model/state.h"
#include "core/rules/preempt.h"

namespace neap {

// What leaves by `needed_by` and is enough for the demand, beside all that plans have claimed of
// it. Its victims are tasks that leave anyway, at no cost. Demands that span nodes are not tried.
[[nodiscard]] std::optional<Proposal> find_leaving(const PoolState& state, const Shape& demand,
                                                   Time needed_by);

}  // namespace neap
