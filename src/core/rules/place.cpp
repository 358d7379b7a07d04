#include "core/rules/place.h"

#include <algorithm>

#include "core/model/pool_index.h"

namespace neap {

namespace {

// Nodes whose proposal the predicate refused (foreign memory, other trust domains) are passed
// over; after so many the search gives up for now and says that the shape does not fit.
constexpr int most_refused = 64;

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

bool is_share(const PoolState& state, const Request& request, MiB capacity) {
  return take_of(state, request, capacity).share < whole_device;
}

struct Search {
  const PoolState& state;
  const Shape& shape;
  int refused = 0;

  // Asks the predicate about one node the index proposed.
  std::vector<Slot> ask(NodeId node, ModelId model, std::int32_t count, std::uint8_t roles) {
    NodeRoom room = room_of(state, node, shape);
    for (DeviceRoom& device : room.devices) {
      device.allowed = device.allowed && state.device(device.device).model == model;
    }
    std::vector<Slot> slots = place_on_node(state, room, shape, count, roles);
    if (slots.empty()) ++refused;
    return slots;
  }

  // The fullest device with room for this share, of one role.
  std::vector<Slot> share_on_partial(ModelId model, Role role, Take take) {
    const auto& by_share = state.index->models[model.value].partial[static_cast<std::size_t>(role)];
    for (auto bucket = by_share.lower_bound(take.share.value); bucket != by_share.end(); ++bucket) {
      for (auto at = bucket->second.lower_bound({take.memory.value, 0});
           at != bucket->second.end() && refused < most_refused; ++at) {
        const NodeId node = state.device(DeviceId(at->second)).node;
        auto slots = ask(node, model, 1, role_bit(role));
        if (!slots.empty()) return slots;
      }
    }
    return {};
  }

  // On the node with the fewest wholly free devices that are enough.
  std::vector<Slot> on_whole(ModelId model, std::uint8_t mask, std::int32_t count) {
    const auto& buckets = state.index->models[model.value].whole[mask_slot(mask)];
    for (auto f = static_cast<std::size_t>(count); f < buckets.size(); ++f) {
      for (auto node = first_of(buckets[f]); node && refused < most_refused;
           node = next_of(buckets[f], *node)) {
        auto slots = ask(NodeId(*node), model, count, mask);
        if (!slots.empty()) return slots;
      }
    }
    return {};
  }

  // Whole nodes and one more for the rest, all or nothing.
  std::vector<Slot> gang(ModelId model, std::uint8_t mask) {
    const std::int32_t per_node = state.models[model.value].per_node;
    const Split split = split_of(shape.request, per_node);
    const auto& index = state.index->models[model.value];
    if (index.free_whole[mask_slot(mask)] < static_cast<std::uint32_t>(shape.request.count)) {
      return {};
    }
    const auto& buckets = index.whole[mask_slot(mask)];
    std::vector<Slot> slots;
    std::vector<NodeId> used;
    std::int32_t left = split.nodes;
    for (auto f = static_cast<std::size_t>(per_node); f < buckets.size() && left > 0; ++f) {
      for (auto node = first_of(buckets[f]); node && left > 0 && refused < most_refused;
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
      for (auto node = first_of(buckets[f]); node && refused < most_refused;
           node = next_of(buckets[f], *node)) {
        if (std::find(used.begin(), used.end(), NodeId(*node)) != used.end()) continue;
        const auto part = ask(NodeId(*node), model, split.remainder, mask);
        if (part.empty()) continue;
        slots.insert(slots.end(), part.begin(), part.end());
        return slots;
      }
    }
    return {};
  }

  // Training fills from the first node, inference from the last, so that they meet late.
  [[nodiscard]] bool from_last() const { return shape.purpose == Purpose::inference; }
  [[nodiscard]] std::optional<std::uint32_t> first_of(const IdSet& set) const {
    return from_last() ? set.last() : set.first();
  }
  [[nodiscard]] std::optional<std::uint32_t> next_of(const IdSet& set, std::uint32_t at) const {
    if (!from_last()) return set.at_or_after(at + 1);
    return at == 0 ? std::nullopt : set.at_or_before(at - 1);
  }

  // Several shares of one node: rare, and the index has no answer, so all nodes are asked.
  std::vector<Slot> shares_on_node(ModelId model, std::uint8_t mask) {
    for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
      auto slots = ask(NodeId(n), model, shape.request.count, mask);
      if (!slots.empty()) return slots;
    }
    return {};
  }

  std::vector<Slot> at_stage(ModelId model, std::uint8_t mask, std::uint8_t new_roles) {
    const ModelState& m = state.models[model.value];
    const Take take = take_of(state, shape.request, m.memory - state.spec.device_reserve);
    const std::int32_t count = shape.request.count;
    if (take.share == whole_device) {
      return count > m.per_node ? gang(model, mask) : on_whole(model, mask, count);
    }
    if (m.memory < state.spec.share_min_memory) return {};
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
};

std::vector<Slot> try_stages(const PoolState& state, const Shape& shape,
                             const std::vector<std::uint8_t>& stages) {
  const auto models = allowed_models(state, shape);
  std::uint8_t before = 0;
  for (const std::uint8_t mask : stages) {
    for (const ModelId model : models) {
      Search search{state, shape};
      auto slots = search.at_stage(model, mask, static_cast<std::uint8_t>(mask & ~before));
      if (!slots.empty()) return slots;
    }
    before = mask;
  }
  return {};
}

// Which of compute and memory is short for a share (S2), over all devices it may use.
WaitCode short_of(const PoolState& state, const Shape& shape) {
  bool compute = false, memory = false;
  const std::uint8_t roles = allowed_roles(shape);
  for (const ModelId m : allowed_models(state, shape)) {
    const Take take = take_of(state, shape.request, state.models[m.value].memory);
    for (std::size_t r = 0; r < role_count; ++r) {
      if ((roles & (1U << r)) == 0) continue;
      const auto& by_share = state.index->models[m.value].partial[r];
      if (by_share.empty()) continue;
      compute = compute || by_share.rbegin()->first >= take.share.value;
      for (auto it = by_share.begin(); it != by_share.end() && !memory; ++it) {
        memory = it->second.rbegin()->first >= take.memory.value;
      }
    }
  }
  if (memory && !compute) return WaitCode::compute;
  if (compute && !memory) return WaitCode::memory;
  return compute ? WaitCode::fragmented : WaitCode::whole_devices;
}

WaitCode diagnose(const PoolState& state, const Shape& shape) {
  std::uint32_t usable = 0, free_whole = 0;
  const std::uint8_t roles = allowed_roles(shape);
  const auto models = allowed_models(state, shape);
  for (const ModelId m : models) {
    const ModelIndex& index = state.index->models[m.value];
    for (std::size_t r = 0; r < role_count; ++r)
      usable += (roles & (1U << r)) != 0 ? index.usable[r] : 0;
    free_whole = std::max(free_whole, index.free_whole[mask_slot(roles)]);
  }
  if (shape.purpose != Purpose::inference && !shape.dedicated) {
    // The same request with wider rights says whether the buffer or the guard is what stands
    // in the way.
    Shape wider = shape;
    wider.releasable = true;
    if (!shape.releasable && !try_stages(state, wider, role_stages(wider)).empty()) {
      return WaitCode::buffer;
    }
    wider.purpose = Purpose::inference;
    if (!try_stages(state, wider, role_stages(wider)).empty()) return WaitCode::guard;
  }
  if (usable == 0) return WaitCode::no_such_device;
  if (shape.dedicated) return WaitCode::dedicated_full;
  if (shape.request.count == 1 && !models.empty() &&
      is_share(state, shape.request, state.models[models.front().value].memory)) {
    return short_of(state, shape);
  }
  return free_whole >= static_cast<std::uint32_t>(shape.request.count) ? WaitCode::fragmented
                                                                       : WaitCode::whole_devices;
}

}  // namespace

std::vector<std::uint8_t> role_stages(const Shape& shape) {
  constexpr std::uint8_t core = role_bit(Role::core);
  constexpr std::uint8_t buffer = role_bit(Role::buffer);
  constexpr std::uint8_t guard = role_bit(Role::guard);
  if (shape.dedicated) return {role_bit(Role::dedicated)};
  if (shape.purpose == Purpose::inference) return {guard, guard | buffer, guard | buffer | core};
  if (shape.releasable) return {core, core | buffer};
  return {core};
}

std::uint8_t allowed_roles(const Shape& shape) { return role_stages(shape).back(); }

Take take_of(const PoolState& state, const Request& request, MiB capacity) {
  const bool alone =
      request.share == whole_device ||
      request.memory.value * all_ppm.value > capacity.value * state.spec.prefilter.out_above.value;
  if (alone) return {whole_device, std::max(request.memory, MiB(1))};
  return {request.share, request.memory};
}

NodeRoom room_of(const PoolState& state, NodeId id, const Shape& shape) {
  const NodeState& node = state.node(id);
  const std::uint8_t roles = allowed_roles(shape);
  NodeRoom room{id, {}};
  room.devices.reserve(static_cast<std::size_t>(node.count));
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceId d(node.first.value + static_cast<std::uint32_t>(i));
    const DeviceState& device = state.device(d);
    DeviceRoom& r = room.devices.emplace_back();
    r.device = d;
    r.role = device.role;
    // What a device could carry says whether a task takes it alone; what is free now does not.
    r.capacity = device.memory - state.spec.device_reserve;
    r.share = free_share(device);
    r.memory = free_memory(state, device);
    const auto& models = shape.request.models;
    const std::string& model = state.models[device.model.value].name;
    r.allowed = is_usable(state, device) && (roles & role_bit(device.role)) != 0 &&
                (models.empty() || std::find(models.begin(), models.end(), model) != models.end());
    for (const Tenant& tenant : device.tenants) {
      const std::string& domain = state.tasks.at(tenant.task).spec.request.trust_domain;
      r.strangers += domain != shape.request.trust_domain ? 1 : 0;
    }
  }
  return room;
}

void take_away(const PoolState& /*state*/, const TaskState& tenant, const Shape& shape,
               NodeRoom& room) {
  const bool stranger = tenant.spec.request.trust_domain != shape.request.trust_domain;
  for (const Slot& slot : tenant.slots) {
    for (DeviceRoom& device : room.devices) {
      if (device.device != slot.device) continue;
      device.share += slot.share;
      device.memory += slot.memory;
      device.strangers -= stranger ? 1 : 0;
    }
  }
}

std::vector<Slot> place_on_node(const PoolState& state, const NodeRoom& room, const Shape& shape,
                                std::int32_t count, std::uint8_t roles) {
  struct Candidate {
    int stage;
    std::int64_t share, memory;
    std::size_t at;
    auto operator<=>(const Candidate&) const = default;
  };
  const auto stages = role_stages(shape);
  std::vector<Candidate> fits;
  fits.reserve(room.devices.size());
  for (std::size_t i = 0; i < room.devices.size(); ++i) {
    const DeviceRoom& device = room.devices[i];
    if (!device.allowed || (roles & role_bit(device.role)) == 0 || device.strangers > 0) continue;
    const Take take = take_of(state, shape.request, device.capacity);
    if (device.share < take.share || device.memory < take.memory) continue;
    if (take.share < whole_device && device.capacity < state.spec.share_min_memory) continue;
    int stage = 0;
    while ((stages[static_cast<std::size_t>(stage)] & role_bit(device.role)) == 0) ++stage;
    const bool whole = take.share == whole_device;
    fits.push_back({stage, whole ? 0 : device.share.value, whole ? 0 : device.memory.value, i});
  }
  if (fits.size() < static_cast<std::size_t>(count)) return {};
  std::sort(fits.begin(), fits.end());
  // All devices of one task are of one model: that of the best candidate which has enough.
  std::vector<Slot> slots;
  for (std::size_t first = 0; first + static_cast<std::size_t>(count) <= fits.size(); ++first) {
    const ModelId model = state.device(room.devices[fits[first].at].device).model;
    slots.clear();
    for (std::size_t i = first; i < fits.size() && slots.size() < static_cast<std::size_t>(count);
         ++i) {
      const DeviceRoom& device = room.devices[fits[i].at];
      if (state.device(device.device).model != model) continue;
      Take take = take_of(state, shape.request, device.capacity);
      if (take.share == whole_device) take.memory = device.memory;
      slots.push_back({device.device, take.share, take.memory});
    }
    if (slots.size() == static_cast<std::size_t>(count)) break;
    slots.clear();
  }
  std::sort(slots.begin(), slots.end(),
            [](const Slot& a, const Slot& b) { return a.device < b.device; });
  return slots;
}

Placement place(const PoolState& state, const Shape& shape) {
  auto slots = try_stages(state, shape, role_stages(shape));
  if (!slots.empty()) return {std::move(slots), WaitCode::none};
  return {{}, diagnose(state, shape)};
}

Split split_of(const Request& request, std::int32_t devices_per_node) {
  if (request.count <= devices_per_node || devices_per_node == 0) return {request.count, 1, 0};
  return {devices_per_node, request.count / devices_per_node, request.count % devices_per_node};
}

}  // namespace neap
