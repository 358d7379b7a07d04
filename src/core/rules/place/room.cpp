#include <algorithm>

#include "core/rules/place.h"
#include "core/rules/place/nearness.h"

namespace neap {

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
  const std::uint8_t roles = node_may(state, shape, id) ? allowed_roles(shape) : 0;
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

Split split_of(const Request& request, std::int32_t devices_per_node) {
  if (request.count <= devices_per_node || devices_per_node == 0) return {request.count, 1, 0};
  return {devices_per_node, request.count / devices_per_node, request.count % devices_per_node};
}

}  // namespace neap
