#include "core/model/victim_bounds.h"

#include <algorithm>
#include <bit>

namespace neap {

namespace {

// The least on top of a heap of the standard library.
constexpr auto ends_later = [](const auto& a, const auto& b) { return a > b; };

}  // namespace

void VictimBounds::touch(NodeId node) {
  for (const auto& tree : trees_) tree->touch(node);
}

void VictimBounds::touch_all() {
  for (const auto& tree : trees_) tree->touch_all();
}

VictimBounds::Tree& VictimBounds::tree_of(const DemandClass& demand) {
  for (const auto& tree : trees_) {
    if (tree->demand_ == demand) return *tree;
  }
  if (trees_.size() == classes_kept) {
    // The one not asked for longest makes room; searches are numbered, so there are no ties.
    const auto oldest = std::min_element(
        trees_.begin(), trees_.end(),
        [](const auto& a, const auto& b) { return a->last_search_ < b->last_search_; });
    trees_.erase(oldest);
  }
  return *trees_.emplace_back(std::make_unique<Tree>(demand));
}

void VictimBounds::Tree::touch_all() {
  for (std::uint32_t n = 0; n < until_.size(); ++n) stale_.insert(n);
}

void VictimBounds::Tree::fit(std::size_t nodes) {
  if (nodes == until_.size()) return;
  const std::size_t known = until_.size();
  until_.resize(nodes, Time::never());
  const std::size_t leaves = std::bit_ceil(std::max<std::size_t>(nodes, 1));
  if (leaves != leaves_) {
    std::vector<std::int64_t> costs(2 * leaves, infeasible);
    for (std::size_t n = 0; n < known; ++n) costs[leaves + n] = costs_[leaves_ + n];
    for (std::size_t at = leaves - 1; at > 0; --at) {
      costs[at] = std::min(costs[2 * at], costs[2 * at + 1]);
    }
    costs_ = std::move(costs);
    leaves_ = leaves;
  }
  for (std::size_t n = known; n < nodes; ++n) stale_.insert(static_cast<std::uint32_t>(n));
}

void VictimBounds::Tree::expire(Time now) {
  while (!alarms_.empty() && alarms_.front().first <= now) {
    const auto [at, node] = alarms_.front();
    std::pop_heap(alarms_.begin(), alarms_.end(), ends_later);
    alarms_.pop_back();
    if (until_[node] == at) stale_.insert(node);
  }
}

void VictimBounds::Tree::set(NodeId node, Bound bound) {
  Time& until = until_[node.value];
  if (bound.until != until) {
    until = bound.until;
    if (until != Time::never()) {
      alarms_.emplace_back(until, node.value);
      std::push_heap(alarms_.begin(), alarms_.end(), ends_later);
      if (alarms_.size() > 4 * until_.size() + 64) renew_alarms();
    }
  }
  std::size_t at = leaf(node);
  if (costs_[at] == bound.cost) return;
  costs_[at] = bound.cost;
  while (at > 1) {
    const std::int64_t least = std::min(costs_[at], costs_[at ^ 1]);
    at /= 2;
    if (costs_[at] == least) return;
    costs_[at] = least;
  }
}

void VictimBounds::Tree::renew_alarms() {
  alarms_.clear();
  for (std::uint32_t n = 0; n < until_.size(); ++n) {
    if (until_[n] != Time::never()) alarms_.emplace_back(until_[n], n);
  }
  std::make_heap(alarms_.begin(), alarms_.end(), ends_later);
}

NodesByBound::NodesByBound(const VictimBounds::Tree& tree) : tree_(&tree) {
  heap_.reserve(64);
  if (tree.size() > 0) push(1, 0);
}

void NodesByBound::push(std::size_t at, std::size_t first_leaf) {
  const std::int64_t cost = tree_->costs_[at];
  if (cost == VictimBounds::infeasible) return;
  heap_.push_back({cost, first_leaf, at});
  std::push_heap(heap_.begin(), heap_.end());
}

std::optional<VictimBounds::Entry> NodesByBound::peek() {
  while (!heap_.empty()) {
    const Branch top = heap_.front();
    if (top.at >= tree_->leaves_) {
      return VictimBounds::Entry{top.cost, NodeId(static_cast<std::uint32_t>(top.first_leaf))};
    }
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    const auto depth = static_cast<unsigned>(std::bit_width(top.at));
    const std::size_t half = tree_->leaves_ >> depth;
    push(2 * top.at, top.first_leaf);
    push(2 * top.at + 1, top.first_leaf + half);
  }
  return std::nullopt;
}

void NodesByBound::take() {
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
}

}  // namespace neap
