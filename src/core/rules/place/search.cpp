#include "core/rules/place/search.h"

#include <algorithm>
#include <bit>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/place/gang.h"
#include "core/rules/place/nearness.h"
#include "core/rules/place/placement_index.h"

namespace neap {

std::optional<std::uint32_t> Search::first_of(const IdSet& set) const {
  return from_last() ? set.last() : set.first();
}

std::optional<std::uint32_t> Search::next_of(const IdSet& set, std::uint32_t at) const {
  if (!from_last()) return set.at_or_after(at + 1);
  return at == 0 ? std::nullopt : set.at_or_before(at - 1);
}

bool Search::is_share(ModelId model) const {
  const MiB capacity = state_.models[model.value].memory - state_.spec.device_reserve;
  return take_of(state_, shape_.request, capacity).share < whole_device;
}

// Models in the order in which they are tried. Those whose memory is of one power of two are
// searched together, and so are all of them for whole devices once prices are known: what they
// are worth decides then.
std::vector<std::vector<ModelId>> Search::alike() const {
  std::vector<std::vector<ModelId>> classes;
  const bool priced = !state_.basis.table.empty();
  int last = -1;
  for (const ModelId model : allowed_models(state_, shape_.request)) {
    const auto memory = static_cast<std::uint64_t>(state_.models[model.value].memory.value);
    const bool shared = is_share(model);
    const auto size = static_cast<int>(std::bit_width(memory));
    const int kind = shared ? size : priced ? 100 : 101 + size;
    if (kind != last) classes.emplace_back();
    classes.back().push_back(model);
    last = kind;
  }
  return classes;
}

// Asks the predicate about one node.
std::vector<Slot> Search::ask(NodeId node, ModelId model, std::int32_t count,
                              std::uint8_t roles) const {
  NodeRoom room = room_of(state_, node, shape_);
  for (DeviceRoom& device : room.devices) {
    device.allowed = device.allowed && state_.device(device.device).model == model;
  }
  return place_on_node(state_, room, shape_, count, roles);
}

// The node with the best score of those on which the predicate places the request.
std::vector<Slot> Search::on_best_ranked(const std::vector<ModelId>& models, std::uint8_t mask) {
  PlacementIndex& index = placement_index(state_);
  GroupDemand wanted;
  for (const ModelId model : models) wanted.demand.models |= std::uint64_t{1} << model.value;
  const bool shared = is_share(models.front());
  wanted.demand.count = shape_.request.count;
  wanted.demand.each =
      static_cast<std::int32_t>((shared ? shape_.request.share : whole_device).value);
  wanted.demand.cpu =
      static_cast<std::int32_t>(std::min<std::int64_t>(shape_.request.cpu_milli, 1'000'000'000));
  wanted.demand.roles = mask;
  if (shared) wanted.memory = shape_.request.memory;
  wanted.equals = from_last() ? leftover::Equals::last : leftover::Equals::first;

  std::vector<Slot> slots;
  const auto accept = [&](std::uint32_t g) {
    const DeviceGroup& group = index.group(g);
    slots = ask(group.node, group.model, shape_.request.count, mask);
    return !slots.empty();
  };
  const auto best = index.best(wanted, accept);
  if (!best) return {};
  const DeviceGroup& group = index.group(*best);
  const bool linked = shape_.request.count > 1 && shape_.request.near.within == Cell::pair;
  if (!shared || linked) return ask(group.node, group.model, shape_.request.count, mask);
  // Which of its devices is best is a matter of the score too.
  NodeRoom room = room_of(state_, group.node, shape_);
  leftover::DeviceMask allowed = 0;
  for (std::size_t i = 0; i < group.count; ++i) {
    const DeviceRoom& device = room.devices[group.device[i]];
    const bool will_do = (mask & role_bit(device.role)) != 0 && serves(state_, device, shape_);
    allowed |= will_do ? 1U << i : 0U;
  }
  const leftover::DeviceMask chosen = index.devices(*best, wanted.demand, allowed);
  for (std::size_t i = 0; i < room.devices.size(); ++i) room.devices[i].allowed = false;
  for (std::size_t i = 0; i < group.count; ++i) {
    if ((chosen >> i & 1U) != 0) room.devices[group.device[i]].allowed = true;
  }
  return place_on_node(state_, room, shape_, shape_.request.count, mask);
}

// Nodes with more devices than scores can tell apart: the fullest that has room.
std::vector<Slot> Search::on_unranked(ModelId model, std::uint8_t mask) {
  std::vector<Slot> slots;
  if (is_share(model)) {
    for (std::size_t r = 0; r < role_count && shape_.request.count == 1; ++r) {
      if ((mask & (1U << r)) == 0) continue;
      const auto& by_share = state_.index->models[model.value].partial[r];
      for (auto bucket = by_share.lower_bound(shape_.request.share.value);
           bucket != by_share.end() && slots.empty(); ++bucket) {
        for (auto at = bucket->second.lower_bound({shape_.request.memory.value, 0});
             at != bucket->second.end() && slots.empty(); ++at) {
          slots = ask(state_.device(DeviceId(at->second)).node, model, 1, role_bit(Role(r)));
        }
      }
      if (!slots.empty()) return slots;
    }
  }
  const auto& buckets = state_.index->models[model.value].whole[mask_slot(mask)];
  const bool several = is_share(model) && shape_.request.count > 1;
  for (auto f = static_cast<std::size_t>(several ? 0 : shape_.request.count); f < buckets.size();
       ++f) {
    for (auto node = first_of(buckets[f]); node; node = next_of(buckets[f], *node)) {
      slots = ask(NodeId(*node), model, shape_.request.count, mask);
      if (!slots.empty()) return slots;
    }
  }
  return {};
}

std::vector<Slot> Search::on_any(const std::vector<ModelId>& models, std::uint8_t mask) {
  std::vector<ModelId> ranked;
  PlacementIndex& index = placement_index(state_);
  for (const ModelId model : models) {
    const ModelState& m = state_.models[model.value];
    if (shape_.request.count <= m.per_node && index.ranks(model)) ranked.push_back(model);
  }
  if (!ranked.empty()) {
    auto slots = on_best_ranked(ranked, mask);
    if (!slots.empty()) return slots;
  }
  for (const ModelId model : models) {
    const ModelState& m = state_.models[model.value];
    std::vector<Slot> slots;
    if (shape_.request.count > m.per_node) {
      if (!is_share(model)) slots = place_gang(state_, shape_, model, mask, GangParts::whole_nodes);
    } else if (!index.ranks(model)) {
      slots = on_unranked(model, mask);
    }
    if (!slots.empty()) return slots;
  }
  return {};
}

std::vector<Slot> Search::at_stage(std::uint8_t mask) {
  for (const NodeId node : preferred_nodes(state_, shape_)) {
    for (const ModelId model : allowed_models(state_, shape_.request)) {
      auto slots = ask(node, model, shape_.request.count, mask);
      if (!slots.empty()) return slots;
    }
  }
  for (const std::vector<ModelId>& models : alike()) {
    auto slots = on_any(models, mask);
    if (!slots.empty()) return slots;
  }
  return {};
}

namespace {

// Whether the pool, were it empty, has equal parts for the gang: nodes that can give as many usable
// devices of the model as one may have, in these roles.
bool could_be_even(const PoolState& state, const Shape& shape, ModelId model, std::uint8_t mask) {
  const Split split = split_of(shape.request, state.models[model.value].per_node);
  std::int32_t parts = split.nodes + (split.remainder > 0 ? 1 : 0);
  for (std::size_t n = 0; n < state.nodes.size() && parts > 0; ++n) {
    const NodeState& node = state.nodes[n];
    std::int32_t usable = 0;
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& device = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
      const bool counts = device.model == model && (mask & role_bit(device.role)) != 0;
      usable += counts && is_usable(state, device) ? 1 : 0;
    }
    const bool full =
        std::min(usable, devices_for(shape.request, whole_host(node))) >= split.per_node;
    if (full && !is_kept_off(state, shape, NodeId(static_cast<std::uint32_t>(n)))) --parts;
  }
  return parts <= 0;
}

// A gang whose parts differ, where equal ones are not to be had even in an empty pool: elsewhere it
// waits for them, for what it would leave over of many nodes is what keeps others from whole ones.
std::vector<Slot> find_uneven(const PoolState& state, const Shape& shape,
                              const std::vector<std::uint8_t>& stages) {
  for (const std::uint8_t mask : stages) {
    for (const ModelId id : allowed_models(state, shape.request)) {
      const ModelState& model = state.models[id.value];
      const Take take = take_of(state, shape.request, model.memory - state.spec.device_reserve);
      if (shape.request.count <= model.per_node || take.share < whole_device) continue;
      if (could_be_even(state, shape, id, stages.back())) continue;
      auto slots = place_gang(state, shape, id, mask, GangParts::uneven);
      if (!slots.empty()) return slots;
    }
  }
  return {};
}

}  // namespace

std::vector<Slot> find_slots(const PoolState& state, const Shape& shape,
                             const std::vector<std::uint8_t>& stages) {
  for (const std::uint8_t mask : stages) {
    auto slots = Search(state, shape).at_stage(mask);
    if (!slots.empty()) return slots;
  }
  return find_uneven(state, shape, stages);
}

std::vector<Slot> place_in_lane(const PoolState& state, const Shape& shape) {
  Shape forced = shape;
  forced.lane = LaneUse::forced;
  return find_slots(state, forced, role_stages(state, forced));
}

std::vector<Slot> place_if_room(const PoolState& state, const Shape& shape) {
  return find_slots(state, shape, role_stages(state, shape));
}

Placement place(const PoolState& state, const Shape& shape) {
  auto slots = find_slots(state, shape, role_stages(state, shape));
  if (!slots.empty()) return {std::move(slots), WaitCode::none};
  return {{}, diagnose(state, shape)};
}

}  // namespace neap
