// Which node is best for a request, kept up to date as the pool changes. Derived from the state:
// built when it is first asked, never part of a snapshot or of the hash, and the same answer comes
// from one that was built anew.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "core/model/pool_index.h"
#include "core/model/state.h"
#include "core/rules/place/best_nodes.h"
#include "core/rules/place/fragment.h"
#include "core/rules/place/scores.h"

namespace neap {

// The devices of one model on one node, as scores see them.
struct DeviceGroup {
  NodeId node;
  ModelId model;
  std::size_t count = 0;
  std::array<std::uint8_t, leftover::most_devices> device{};  // position on the node, by bit
};

// What is searched for, but what `accept` looks at.
struct GroupDemand {
  leftover::Demand demand;
  MiB memory{0};  // of each device; shares alone are ranked by it
  leftover::Equals equals = leftover::Equals::first;
};

class PlacementIndex {
 public:
  // Catches up with the state. Called before anything else.
  void update(const PoolState& state);

  // Nodes with more devices of a model than the scores can tell apart are not ranked.
  [[nodiscard]] bool ranks(ModelId model) const { return !unranked_.contains(model.value); }
  [[nodiscard]] const DeviceGroup& group(std::uint32_t index) const { return groups_[index]; }

  // The group with the highest score of those that have room and `accept`: bool(group).
  template <class Accept>
  [[nodiscard]] std::optional<std::uint32_t> best(const GroupDemand& demand, const Accept& accept) {
    const auto found = best_.best(supplies_, ranking_of(demand), accept);
    return found ? std::optional(found->node) : std::nullopt;
  }
  // The devices of a group that a share should take, of those in `allowed`, as bits.
  [[nodiscard]] leftover::DeviceMask devices(std::uint32_t group, const leftover::Demand& demand,
                                             leftover::DeviceMask allowed) const;

  PlacementIndex();
  PlacementIndex(const PlacementIndex&) = delete;
  PlacementIndex& operator=(const PlacementIndex&) = delete;

 private:
  using Memory = std::array<std::int32_t, leftover::most_devices>;
  struct Grader {
    using Nodes = std::vector<leftover::Supply>;
    const PlacementIndex& index;
    [[nodiscard]] std::optional<leftover::Grade> grade(const leftover::Supply& node,
                                                       std::uint32_t group,
                                                       leftover::ShapeRef shape) const;
    [[nodiscard]] std::int64_t price(leftover::ShapeRef shape, std::uint32_t cell) const;
    [[nodiscard]] std::uint32_t cells() const;
  };
  struct Ranked {
    MiB memory;  // devices with less do not come into question
    std::uint64_t asked = 0;
  };
  using RankingKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::uint64_t,
                                std::uint8_t, std::int64_t, leftover::Equals>;

  void add_groups(const PoolState& state);
  void new_scores(const PoolState& state);
  void look_at(const PoolState& state, std::uint32_t group);
  [[nodiscard]] leftover::Supply supply_of(const PoolState& state, std::uint32_t group,
                                           Memory& memory) const;
  [[nodiscard]] std::uint32_t ranking_of(const GroupDemand& demand);
  [[nodiscard]] std::uint32_t unused_ranking();

  std::vector<DeviceGroup> groups_;
  std::vector<std::vector<std::uint32_t>> groups_of_node_;
  IdSet unranked_;  // models
  std::vector<leftover::Supply> supplies_;
  std::vector<Memory> memory_;           // free MiB, by group and bit
  std::vector<std::int64_t> potential_;  // by group
  std::size_t models_ = 0;
  std::int64_t capacity_ = 0;  // milli
  std::uint32_t basis_ = 0;    // its version
  std::variant<leftover::Scores, leftover::Fragments> scores_;
  Grader grader_;
  leftover::BestNodes<Grader> best_;
  std::vector<Ranked> rankings_;  // by the id that best_ gave
  std::map<RankingKey, std::uint32_t> ranking_ids_;
  std::uint64_t asked_ = 0;
};

// The state's own, made when it is first asked for and up to date.
[[nodiscard]] PlacementIndex& placement_index(const PoolState& state);
// Kinds of tasks as scores know them: gangs as the whole nodes that they need.
[[nodiscard]] std::vector<leftover::TaskKind> task_kinds(const PoolState& state,
                                                         const std::vector<DemandCount>& demand);
// What the groups would have if nothing ran. Those of nodes that are not ranked are left out.
[[nodiscard]] std::vector<leftover::Supply> empty_supplies(const PoolState& state);

}  // namespace neap
