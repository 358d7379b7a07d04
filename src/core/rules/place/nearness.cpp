#include "core/rules/place/nearness.h"

#include <algorithm>

namespace neap {

bool node_may(const PoolState& state, const Shape& shape, NodeId node) {
  const auto& exclude = shape.request.near.exclude;
  return exclude.empty() ||
         !std::binary_search(exclude.begin(), exclude.end(), state.node(node).name);
}

std::vector<NodeId> preferred_nodes(const PoolState& /*state*/, const Shape& /*shape*/) {
  return {};
}

}  // namespace neap
