#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/place/search.h"

namespace neap {

// Whole nodes and one more for the rest, all or nothing.
std::vector<Slot> Search::gang(ModelId model, std::uint8_t mask) {
  const std::int32_t per_node = state_.models[model.value].per_node;
  const Split split = split_of(shape_.request, per_node);
  const auto& index = state_.index->models[model.value];
  if (index.free_whole[mask_slot(mask)] < static_cast<std::uint32_t>(shape_.request.count)) {
    return {};
  }
  const auto& buckets = index.whole[mask_slot(mask)];
  std::vector<Slot> slots;
  std::vector<NodeId> used;
  std::int32_t left = split.nodes;
  for (auto f = static_cast<std::size_t>(per_node); f < buckets.size() && left > 0; ++f) {
    for (auto node = first_of(buckets[f]); node && left > 0 && !gives_up();
         node = next_of(buckets[f], *node)) {
      const auto part = ask(NodeId(*node), model, per_node, mask);
      if (part.empty()) continue;
      slots.insert(slots.end(), part.begin(), part.end());
      used.push_back(NodeId(*node));
      --left;
    }
  }
  if (left > 0) return {};
  if (split.remainder == 0) return slots;
  for (auto f = static_cast<std::size_t>(split.remainder); f < buckets.size(); ++f) {
    for (auto node = first_of(buckets[f]); node && !gives_up(); node = next_of(buckets[f], *node)) {
      if (std::find(used.begin(), used.end(), NodeId(*node)) != used.end()) continue;
      const auto part = ask(NodeId(*node), model, split.remainder, mask);
      if (part.empty()) continue;
      slots.insert(slots.end(), part.begin(), part.end());
      return slots;
    }
  }
  return {};
}

}  // namespace neap
