// Requests for more devices than a node has (D7): over whole nodes in the smallest part of the
// machine room that holds them, all or nothing. For rules/place alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rules/place.h"

namespace neap {

// Nodes that give all their devices, and one for the rest: equal parts, as distributed training is
// started. Only where that is nowhere to be had: whatever each node has free, of few nodes.
enum class GangParts : std::uint8_t { whole_nodes, uneven };

// On whole devices of one model and of the roles in `mask`; empty when they are not there. Of
// racks, then of fault domains, the one in which the fewest are left; then over several.
[[nodiscard]] std::vector<Slot> place_gang(const PoolState& state, const Shape& shape,
                                           ModelId model, std::uint8_t mask, GangParts parts);

}  // namespace neap
