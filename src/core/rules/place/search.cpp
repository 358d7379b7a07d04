#include "core/rules/place/search.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/place/gang.h"

namespace neap {

std::vector<ModelId> allowed_models(const PoolState& state, const Shape& shape) {
  const Request& request = shape.request;
  std::vector<ModelId> out;
  for (std::uint16_t m = 0; m < state.models.size(); ++m) {
    const ModelState& model = state.models[m];
    if (model.memory < request.memory) continue;
    if (!request.models.empty() && std::find(request.models.begin(), request.models.end(),
                                             model.name) == request.models.end()) {
      continue;
    }
    out.push_back(ModelId(m));
  }
  // Whole devices: the smallest that serves. Shares: the largest, which mixes best (A7).
  const bool shared = request.share < whole_device;
  std::stable_sort(out.begin(), out.end(), [&](ModelId a, ModelId b) {
    const MiB x = state.models[a.value].memory;
    const MiB y = state.models[b.value].memory;
    return shared ? x > y : x < y;
  });
  return out;
}

namespace {
// Nodes whose proposal the predicate refused (foreign memory, other trust domains) are passed
// over; after so many the search gives up for now and says that the shape does not fit.
constexpr int most_refused = 64;
}  // namespace

bool Search::gives_up() const { return refused_ >= most_refused; }

std::optional<std::uint32_t> Search::first_of(const IdSet& set) const {
  return from_last() ? set.last() : set.first();
}

std::optional<std::uint32_t> Search::next_of(const IdSet& set, std::uint32_t at) const {
  if (!from_last()) return set.at_or_after(at + 1);
  return at == 0 ? std::nullopt : set.at_or_before(at - 1);
}

// Asks the predicate about one node that the index proposed.
std::vector<Slot> Search::ask(NodeId node, ModelId model, std::int32_t count, std::uint8_t roles) {
  NodeRoom room = room_of(state_, node, shape_);
  for (DeviceRoom& device : room.devices) {
    device.allowed = device.allowed && state_.device(device.device).model == model;
  }
  std::vector<Slot> slots = place_on_node(state_, room, shape_, count, roles);
  if (slots.empty()) ++refused_;
  return slots;
}

// The fullest device with room for this share, of one role.
std::vector<Slot> Search::share_on_partial(ModelId model, Role role, Take take) {
  const auto& by_share = state_.index->models[model.value].partial[static_cast<std::size_t>(role)];
  for (auto bucket = by_share.lower_bound(take.share.value); bucket != by_share.end(); ++bucket) {
    for (auto at = bucket->second.lower_bound({take.memory.value, 0});
         at != bucket->second.end() && !gives_up(); ++at) {
      const NodeId node = state_.device(DeviceId(at->second)).node;
      auto slots = ask(node, model, 1, role_bit(role));
      if (!slots.empty()) return slots;
    }
  }
  return {};
}

// On the node with the fewest wholly free devices that are enough.
std::vector<Slot> Search::on_whole(ModelId model, std::uint8_t mask, std::int32_t count) {
  const auto& buckets = state_.index->models[model.value].whole[mask_slot(mask)];
  for (auto f = static_cast<std::size_t>(count); f < buckets.size(); ++f) {
    for (auto node = first_of(buckets[f]); node && !gives_up(); node = next_of(buckets[f], *node)) {
      auto slots = ask(NodeId(*node), model, count, mask);
      if (!slots.empty()) return slots;
    }
  }
  return {};
}

// Several shares of one node: rare, and the index has no answer, so all nodes are asked.
std::vector<Slot> Search::shares_on_node(ModelId model, std::uint8_t mask) {
  for (std::uint32_t n = 0; n < state_.nodes.size(); ++n) {
    auto slots = ask(NodeId(n), model, shape_.request.count, mask);
    if (!slots.empty()) return slots;
  }
  return {};
}

std::vector<Slot> Search::at_stage(ModelId model, std::uint8_t mask, std::uint8_t new_roles) {
  const ModelState& m = state_.models[model.value];
  const Take take = take_of(state_, shape_.request, m.memory - state_.spec.device_reserve);
  const std::int32_t count = shape_.request.count;
  if (take.share == whole_device) {
    if (count > m.per_node) return place_gang(state_, shape_, model, mask, GangParts::whole_nodes);
    return on_whole(model, mask, count);
  }
  if (m.memory < state_.spec.share_min_memory) return {};
  if (count > 1) return shares_on_node(model, mask);
  for (std::size_t r = 0; r < role_count; ++r) {
    const Role role = static_cast<Role>(r);
    if ((new_roles & role_bit(role)) == 0) continue;
    auto slots = share_on_partial(model, role, take);
    if (slots.empty()) slots = on_whole(model, new_roles, 1);
    if (!slots.empty()) return slots;
  }
  return {};
}

namespace {
// A gang whose parts differ, where equal ones are not to be had in any stage.
std::vector<Slot> find_uneven(const PoolState& state, const Shape& shape,
                              const std::vector<std::uint8_t>& stages,
                              const std::vector<ModelId>& models) {
  for (const std::uint8_t mask : stages) {
    for (const ModelId id : models) {
      const ModelState& model = state.models[id.value];
      const Take take = take_of(state, shape.request, model.memory - state.spec.device_reserve);
      if (shape.request.count <= model.per_node || take.share < whole_device) continue;
      auto slots = place_gang(state, shape, id, mask, GangParts::uneven);
      if (!slots.empty()) return slots;
    }
  }
  return {};
}
}  // namespace

std::vector<Slot> find_slots(const PoolState& state, const Shape& shape,
                             const std::vector<std::uint8_t>& stages) {
  const auto models = allowed_models(state, shape);
  std::uint8_t before = 0;
  for (const std::uint8_t mask : stages) {
    for (const ModelId model : models) {
      auto slots =
          Search(state, shape).at_stage(model, mask, static_cast<std::uint8_t>(mask & ~before));
      if (!slots.empty()) return slots;
    }
    before = mask;
  }
  return find_uneven(state, shape, stages, models);
}

Placement place(const PoolState& state, const Shape& shape) {
  auto slots = find_slots(state, shape, role_stages(shape));
  if (!slots.empty()) return {std::move(slots), WaitCode::none};
  return {{}, diagnose(state, shape)};
}

}  // namespace neap
