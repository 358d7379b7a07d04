// For each node, a lower bound on the cost of making room there for one kind of demand, kept in a
// tournament tree, so that the search for victims looks at few nodes. What a bound is comes from
// rules/preempt.h; here it is only kept: derived, the same when rebuilt.
//
// A bound holds until somebody touches its node or until the moment that came with it, and is
// measured anew when it is asked for after that. So a search costs work in proportion to what
// changed, and the first one of its kind a look at every node.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/model/id_set.h"
#include "core/model/state.h"

namespace neap {

// Whether killing for capacity is among the modes (POLICIES 1, break-glass).
enum class Killing : std::uint8_t { never, break_glass };
// Whose cost a bound counts in full: of a demand that spans nodes, a victim on several of them is
// paid once, so each node may count no more than its part.
enum class Spread : std::uint8_t { one_node, many_nodes };

// From whom a demand may take: from lighter tiers, or for a guarantee from its own tier as well.
enum class Taking : std::uint8_t { lighter, equal };

// Demands that share their bounds.
struct DemandClass {
  Shape shape;     // request.count: devices of one node
  Micros horizon;  // victims that release within it count
  Killing killing{};
  Spread spread{};
  Taking taking{};
  bool operator==(const DemandClass&) const = default;
};

class VictimBounds {
 public:
  static constexpr std::int64_t infeasible = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t classes_kept = 64;
  // A class not searched for so many searches is left to become out of date.
  static constexpr std::uint64_t searches_in_use = 64;

  struct Bound {
    std::int64_t cost = infeasible;
    Time until = Time::never();  // holds before this
    bool operator==(const Bound&) const = default;
  };
  struct Entry {
    std::int64_t cost = 0;
    NodeId node;
  };

  // Something changed that may lower the cost of victims on this node: its tenants and their
  // phase, contract, captured checkpoint or measured lengths, claims, roles, health, memory of
  // others. A change of a device's role concerns every node of its tenants. Cheap: noted only.
  void touch(NodeId node);
  void touch_all();

  // The bounds of one class, up to date. `measure` is Bound(NodeId).
  class Tree;
  template <class Measure>
  const Tree& up_to_date(const DemandClass& demand, std::size_t nodes, Time now, Measure&& measure);

  // Measures the bounds of at most `at_most` nodes that are out of date, in the classes that were
  // searched lately, so that the next search finds little to do. All classes of a node together:
  // its tasks are then at hand. `measure` is Bound(const DemandClass&, NodeId).
  template <class Measure>
  void settle(std::size_t nodes, Time now, std::size_t at_most, Measure&& measure);

  [[nodiscard]] std::size_t classes() const { return trees_.size(); }

 private:
  Tree& tree_of(const DemandClass& demand);

  std::vector<std::unique_ptr<Tree>> trees_;
  std::uint64_t searches_ = 0;
};

class VictimBounds::Tree {
 public:
  explicit Tree(DemandClass demand) : demand_(std::move(demand)) {}

  [[nodiscard]] const DemandClass& demand() const { return demand_; }
  [[nodiscard]] Bound bound(NodeId node) const { return {costs_[leaf(node)], until_[node.value]}; }
  [[nodiscard]] std::size_t size() const { return until_.size(); }

 private:
  friend class VictimBounds;
  friend class NodesByBound;

  [[nodiscard]] std::size_t leaf(NodeId node) const { return leaves_ + node.value; }
  void touch(NodeId node) { stale_.insert(node.value); }
  void touch_all();
  void fit(std::size_t nodes);  // as many leaves as there are nodes
  void expire(Time now);        // what holds no longer becomes stale
  void set(NodeId node, Bound bound);
  void renew_alarms();

  using Alarm = std::pair<Time, std::uint32_t>;

  DemandClass demand_;
  std::size_t leaves_ = 0;           // a power of two
  std::vector<std::int64_t> costs_;  // costs_[1] is the least; node n at leaves_ + n
  std::vector<Time> until_;          // by node
  std::vector<Alarm> alarms_;        // a heap; those that until_ does not confirm are void
  IdSet stale_;
  std::uint64_t last_search_ = 0;
};

// Nodes in order of (bound, id), as far as one asks.
class NodesByBound {
 public:
  explicit NodesByBound(const VictimBounds::Tree& tree);
  // The next node, not taken yet; nothing when the rest is infeasible.
  [[nodiscard]] std::optional<VictimBounds::Entry> peek();
  void take();

 private:
  struct Branch {
    std::int64_t cost = 0;
    std::size_t first_leaf = 0;
    std::size_t at = 0;
    // For a heap with the least on top.
    bool operator<(const Branch& o) const {
      return cost != o.cost ? cost > o.cost : first_leaf > o.first_leaf;
    }
  };
  void push(std::size_t at, std::size_t first_leaf);

  const VictimBounds::Tree* tree_;
  std::vector<Branch> heap_;
};

template <class Measure>
const VictimBounds::Tree& VictimBounds::up_to_date(const DemandClass& demand, std::size_t nodes,
                                                   Time now, Measure&& measure) {
  Tree& tree = tree_of(demand);
  tree.last_search_ = ++searches_;
  tree.fit(nodes);
  tree.expire(now);
  while (const auto node = tree.stale_.first()) {
    tree.stale_.erase(*node);
    tree.set(NodeId(*node), measure(NodeId(*node)));
  }
  return tree;
}

template <class Measure>
void VictimBounds::settle(std::size_t nodes, Time now, std::size_t at_most, Measure&& measure) {
  const auto is_in_use = [this](const Tree& tree) {
    return searches_ - tree.last_search_ < searches_in_use;
  };
  for (const auto& tree : trees_) {
    if (!is_in_use(*tree)) continue;
    tree->fit(nodes);
    tree->expire(now);
  }
  for (; at_most > 0; --at_most) {
    std::optional<std::uint32_t> first;
    for (const auto& tree : trees_) {
      const auto node = is_in_use(*tree) ? tree->stale_.first() : std::nullopt;
      if (node && (!first || *node < *first)) first = node;
    }
    if (!first) return;
    for (const auto& tree : trees_) {
      if (!is_in_use(*tree) || !tree->stale_.contains(*first)) continue;
      tree->stale_.erase(*first);
      tree->set(NodeId(*first), measure(tree->demand_, NodeId(*first)));
    }
  }
}

}  // namespace neap
