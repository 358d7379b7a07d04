#include "core/rules/place/placement_index.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/model/check.h"
#include "core/rules/place.h"

namespace neap {

using leftover::DeviceMask;
using leftover::Supply;

namespace {

// Cores of a host of which nothing is known: more than anybody asks for.
constexpr std::int32_t ample_cpu = 1'000'000'000;
constexpr MiB ample_memory{std::int64_t{1} << 50};

// Rankings are kept while they hold no more entries than this in all; then those that were not
// asked for longest are given up.
constexpr std::size_t most_entries = 8'000'000;
constexpr std::size_t fewest_rankings = 32;
// Whatever is asked for: on a small pool too, requests that all differ do not fill the memory.
constexpr std::size_t most_rankings = 1024;

// Down to the eighth of the power of two below: requests that differ by less share a ranking.
MiB rounded_down(MiB memory) {
  if (memory.value <= 8) return memory;
  const auto bits = std::bit_width(static_cast<std::uint64_t>(memory.value));
  const std::int64_t step = std::int64_t{1} << (bits - 4);
  return MiB(memory.value / step * step);
}

std::int32_t cpu_left(const NodeState& node) {
  if (node.cpu_milli == 0) return ample_cpu;
  const std::int64_t left = node.cpu_milli - node.used_cpu - node.held_cpu;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, ample_cpu));
}

}  // namespace

std::vector<leftover::TaskKind> task_kinds(const PoolState& state,
                                           const std::vector<DemandCount>& demand_seen) {
  std::vector<leftover::TaskKind> kinds;
  for (const DemandCount& count : demand_seen) {
    const DemandKind& kind = count.kind;
    leftover::Demand demand;
    std::int32_t per_node = 0;
    std::uint64_t fitting = 0;
    for (std::size_t m = 0; m < state.models.size() && m < leftover::most_models; ++m) {
      const ModelState& model = state.models[m];
      if (!names_model(kind.models, model.name) ||
          model.memory - state.spec.device_reserve < kind.memory) {
        continue;
      }
      fitting |= std::uint64_t{1} << m;
      per_node = std::max(per_node, model.per_node);
    }
    if (fitting == 0) continue;
    const bool any = static_cast<std::size_t>(std::popcount(fitting)) == state.models.size();
    demand.models = any ? 0 : fitting;
    per_node = std::min(per_node, leftover::most_devices);
    const std::int32_t parts = std::max(1, (kind.count + per_node - 1) / per_node);
    demand.count = std::min(kind.count, per_node);
    demand.each = static_cast<std::int32_t>(kind.share.value);
    demand.cpu =
        static_cast<std::int32_t>(std::min<std::int64_t>(kind.cpu_milli / parts, ample_cpu));
    kinds.push_back({demand, count.tasks * parts});
  }
  return kinds;
}

std::vector<Supply> empty_supplies(const PoolState& state) {
  std::vector<Supply> supplies;
  for (const NodeState& node : state.nodes) {
    std::map<std::uint16_t, Supply> by_model;
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& device = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
      Supply& supply = by_model[device.model.value];
      if (supply.devices == 0) supply.idle.fill(0);
      if (supply.devices < leftover::most_devices) supply.idle[supply.devices] = leftover::whole;
      ++supply.devices;
    }
    for (auto& [model, supply] : by_model) {
      if (supply.devices > leftover::most_devices || model >= leftover::most_models) continue;
      supply.model = static_cast<std::uint8_t>(model);
      supply.unused = static_cast<std::uint16_t>((1U << supply.devices) - 1);
      supply.by_role[0] = supply.unused;
      supply.free = supply.devices * leftover::whole;
      supply.cpu =
          node.cpu_milli == 0
              ? ample_cpu
              : static_cast<std::int32_t>(std::min<std::int64_t>(node.cpu_milli, ample_cpu));
      supply.memory = ample_memory;
      supplies.push_back(supply);
    }
  }
  return supplies;
}

PlacementIndex::PlacementIndex()
    : scores_(std::in_place_type<leftover::Fragments>, std::span<const leftover::TaskKind>()),
      grader_{*this},
      best_(grader_) {}

PlacementIndex& placement_index(const PoolState& state) {
  PoolIndex& index = *state.index;
  if (!index.placement) index.placement = std::make_shared<PlacementIndex>();
  index.placement->update(state);
  return *index.placement;
}

void PlacementIndex::update(const PoolState& state) {
  const bool grown = groups_of_node_.size() < state.nodes.size();
  if (grown) add_groups(state);
  IdSet& touched = state.index->placement_touched;
  if (grown || models_ != state.models.size() || basis_ != state.basis.version) {
    new_scores(state);
    while (const auto node = touched.first()) touched.erase(*node);
    return;
  }
  if (touched.empty()) return;
  while (const auto node = touched.first()) {
    touched.erase(*node);
    for (const std::uint32_t group : groups_of_node_[*node]) look_at(state, group);
  }
  std::visit([&](auto& scores) { scores.refresh(capacity_); }, scores_);
}

void PlacementIndex::add_groups(const PoolState& state) {
  for (auto n = groups_of_node_.size(); n < state.nodes.size(); ++n) {
    const NodeState& node = state.nodes[n];
    auto& of_node = groups_of_node_.emplace_back();
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& device = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
      const auto known = std::find_if(of_node.begin(), of_node.end(), [&](std::uint32_t g) {
        return groups_[g].model == device.model;
      });
      std::uint32_t at = known == of_node.end() ? 0 : *known;
      if (known == of_node.end()) {
        at = static_cast<std::uint32_t>(groups_.size());
        of_node.push_back(at);
        groups_.push_back({NodeId(static_cast<std::uint32_t>(n)), device.model, 0, {}});
        Supply& supply = supplies_.emplace_back();
        supply.idle.fill(0);
        supply.model = static_cast<std::uint8_t>(device.model.value);
        memory_.push_back({});
        potential_.push_back(0);
      }
      DeviceGroup& group = groups_[at];
      if (group.count == leftover::most_devices || device.model.value >= leftover::most_models) {
        unranked_.insert(device.model.value);
        continue;
      }
      group.device[group.count++] = static_cast<std::uint8_t>(i);
    }
  }
}

void PlacementIndex::new_scores(const PoolState& state) {
  models_ = state.models.size();
  basis_ = state.basis.version;
  const std::vector<leftover::TaskKind> kinds = task_kinds(state, state.basis.kinds);
  if (state.basis.table.empty()) {
    scores_.emplace<leftover::Fragments>(kinds);
  } else {
    scores_.emplace<leftover::Scores>(leftover::table_of(state.basis.table),
                                      leftover::Course::lasting, kinds,
                                      std::min<std::size_t>(models_, leftover::most_models));
  }
  capacity_ = 0;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const std::uint32_t version = supplies_[g].version + 1;
    supplies_[g] = supply_of(state, g, memory_[g]);
    supplies_[g].version = version;
    capacity_ += std::int64_t{supplies_[g].devices} * leftover::whole;
    std::visit(
        [&](auto& scores) {
          scores.count(supplies_[g], 1);
          potential_[g] = scores.potential_of(supplies_[g]);
        },
        scores_);
  }
  std::visit([&](auto& scores) { scores.refresh(capacity_); }, scores_);
  best_.forget_scores();
}

Supply PlacementIndex::supply_of(const PoolState& state, std::uint32_t group,
                                 Memory& memory) const {
  const DeviceGroup& g = groups_[group];
  const NodeState& node = state.node(g.node);
  Supply supply;
  supply.devices = static_cast<std::uint8_t>(g.count);
  supply.model = supplies_[group].model;
  supply.idle.fill(0);
  supply.cpu = cpu_left(node);
  supply.memory =
      node.memory.value == 0 ? ample_memory : node.memory - node.used_memory - node.held_memory;
  for (std::size_t i = 0; i < supply.devices; ++i) {
    const DeviceState& device = state.devices[node.first.value + g.device[i]];
    memory[i] = 0;
    if (!is_usable(state, device)) continue;
    const auto bit = static_cast<std::uint16_t>(1U << i);
    const std::int64_t idle =
        std::clamp<std::int64_t>(free_share(device).value, 0, leftover::whole);
    const std::int64_t room = free_memory(state, device).value;
    memory[i] = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(room, 0, std::numeric_limits<std::int32_t>::max()));
    supply.idle[i] = static_cast<std::int16_t>(idle);
    supply.free += static_cast<std::int32_t>(idle);
    if (idle == leftover::whole && device.tenants.empty()) {
      supply.unused = static_cast<std::uint16_t>(supply.unused | bit);
    }
    auto& role = supply.by_role[static_cast<std::size_t>(device.role)];
    role = static_cast<std::uint16_t>(role | bit);
  }
  return supply;
}

void PlacementIndex::look_at(const PoolState& state, std::uint32_t group) {
  Supply& known = supplies_[group];
  Memory memory{};
  Supply now = supply_of(state, group, memory);
  if (now.idle == known.idle && now.cpu == known.cpu && now.memory == known.memory &&
      now.unused == known.unused && now.by_role == known.by_role && memory == memory_[group]) {
    return;
  }
  now.version = known.version + 1;
  std::visit(
      [&](auto& scores) {
        scores.count(known, -1);
        scores.count(now, 1);
        potential_[group] = scores.potential_of(now);
      },
      scores_);
  known = now;
  memory_[group] = memory;
  best_.changed(supplies_, group);
}

std::uint32_t PlacementIndex::ranking_of(const GroupDemand& wanted) {
  const leftover::Demand& demand = wanted.demand;
  const MiB memory = demand.each < leftover::whole ? rounded_down(wanted.memory) : MiB(0);
  const RankingKey key{demand.cpu,   demand.count, demand.each,  demand.models,
                       demand.roles, memory.value, wanted.equals};
  const auto found = ranking_ids_.find(key);
  if (found != ranking_ids_.end()) {
    rankings_[found->second].asked = ++asked_;
    return found->second;
  }
  const std::size_t most = std::clamp(most_entries / std::max<std::size_t>(1, groups_.size()),
                                      fewest_rankings, most_rankings);
  std::uint32_t id = 0;
  if (rankings_.size() < most) {
    id = best_.add(demand, wanted.equals);
    rankings_.emplace_back();
  } else {
    id = unused_ranking();
    best_.replace(id, demand, wanted.equals);
  }
  rankings_[id] = {memory, ++asked_};
  ranking_ids_.emplace(key, id);
  return id;
}

// Takes the ranking away from the demand that was not asked for longest.
std::uint32_t PlacementIndex::unused_ranking() {
  const auto oldest =
      std::min_element(ranking_ids_.begin(), ranking_ids_.end(), [&](const auto& a, const auto& b) {
        return rankings_[a.second].asked < rankings_[b.second].asked;
      });
  const std::uint32_t id = oldest->second;
  ranking_ids_.erase(oldest);
  return id;
}

DeviceMask PlacementIndex::devices(std::uint32_t group, const leftover::Demand& demand,
                                   DeviceMask allowed) const {
  Supply supply = supplies_[group];
  for (auto& role : supply.by_role) role = static_cast<std::uint16_t>(role & allowed);
  return std::visit(
      [&](const auto& scores) { return scores.devices(supply, potential_[group], demand); },
      scores_);
}

std::optional<leftover::Grade> PlacementIndex::Grader::grade(const Supply& node,
                                                             std::uint32_t group,
                                                             leftover::ShapeRef shape) const {
  if (!node.fits(shape.demand)) return {};
  const auto grade_of = [&](const Supply& supply) {
    return std::visit(
        [&](const auto& scores) {
          return scores.grade(supply, index.potential_[group], shape.demand);
        },
        index.scores_);
  };
  const MiB memory = index.rankings_[shape.id].memory;
  if (memory.value == 0) return grade_of(node);
  DeviceMask enough = 0;
  for (std::size_t i = 0; i < node.devices; ++i) {
    enough |= index.memory_[group][i] >= memory.value ? 1U << i : 0U;
  }
  Supply supply = node;
  for (auto& role : supply.by_role) role = static_cast<std::uint16_t>(role & enough);
  if (!supply.fits(shape.demand)) return {};
  return grade_of(supply);
}

std::int64_t PlacementIndex::Grader::price(leftover::ShapeRef shape, std::uint32_t cell) const {
  return std::visit([&](const auto& scores) { return scores.price(shape.demand, cell); },
                    index.scores_);
}

std::uint32_t PlacementIndex::Grader::cells() const {
  return std::visit([](const auto& scores) { return scores.cells(); }, index.scores_);
}

}  // namespace neap
