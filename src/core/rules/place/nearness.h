// Where a task may be beside what it needs, and where it would rather be (D7, C2). The first is
// part of the predicate (place_on_node); here it is a cheap look at a node before that. The second
// is a wish: a search tries these nodes first and never waits for them.
#pragma once

#include <vector>

#include "core/model/state.h"

namespace neap {

// False where no device of this node can serve the shape: the node is excluded, or what the task
// is to be apart from is there. True promises nothing.
[[nodiscard]] bool node_may(const PoolState& state, const Shape& shape, NodeId node);

// The nodes to try before all others, in this order; few, and often none. Those where the same
// weights are held; for replicas, those in fault domains with the fewest of their group.
[[nodiscard]] std::vector<NodeId> preferred_nodes(const PoolState& state, const Shape& shape);

}  // namespace neap
