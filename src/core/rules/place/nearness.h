// Where a task may be beside what it needs, and where it would rather be (D7, C2). The first is
// part of the predicate (place_on_node); here it is a cheap look at a node before that. The second
// is a wish: a search tries these nodes first and never waits for them.
#pragma once

#include <vector>

#include "core/model/group_index.h"
#include "core/model/state.h"

namespace neap {

// False where no device of this node can serve the shape now: it is kept off, the node's host is
// short, or no pair is free. True promises nothing.
[[nodiscard]] bool node_may(const PoolState& state, const Shape& shape, NodeId node);

// The node is excluded, or so many of the group are there that nobody may come. Members of its own
// group are not asked to yield for a task, so this stands whoever else leaves.
[[nodiscard]] bool is_kept_off(const PoolState& state, const Shape& shape, NodeId node);
// Where the shape's group is; null when it has none, or is nowhere.
[[nodiscard]] const GroupIndex* group_index(const PoolState& state, const Shape& shape);

// The nodes to try before all others, in this order; few, and often none. Those where the same
// weights are held; for replicas, those in fault domains with the fewest of their group.
[[nodiscard]] std::vector<NodeId> preferred_nodes(const PoolState& state, const Shape& shape);

}  // namespace neap
