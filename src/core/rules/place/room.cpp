#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"
#include "core/rules/place/nearness.h"

namespace neap {

namespace {

// Guard and buffer are enough for all services at their largest. Then inference has no need of
// other devices: one replica there would keep a node from being whole for training.
bool region_holds_all_replicas(const PoolState& state) {
  std::int64_t devices = 0;
  for (const ModelIndex& model : state.index->models) {
    devices += model.usable[static_cast<std::size_t>(Role::guard)];
    devices += model.usable[static_cast<std::size_t>(Role::buffer)];
  }
  if (devices == 0) return false;
  bool some_serve = false;
  for (const ServiceState& service : state.services) {
    if (service.removed) continue;
    some_serve = true;
    devices -= std::int64_t{service.spec.max_replicas} * service.spec.request.count;
    if (devices < 0) return false;
  }
  return some_serve;
}

}  // namespace

std::vector<std::uint8_t> role_stages(const PoolState& state, const Shape& shape) {
  constexpr std::uint8_t core = role_bit(Role::core);
  constexpr std::uint8_t buffer = role_bit(Role::buffer);
  constexpr std::uint8_t guard = role_bit(Role::guard);
  if (shape.dedicated) return {role_bit(Role::dedicated)};
  const AdoptionStage stage = state.adoption.stage;
  if (shape.purpose == Purpose::inference) {
    if (stage == AdoptionStage::physical || region_holds_all_replicas(state)) {
      return {guard, guard | buffer};
    }
    return {guard, guard | buffer, guard | buffer | core};
  }
  constexpr std::uint8_t lane = role_bit(Role::lane);
  if (shape.lane == LaneUse::forced) return {lane};
  std::vector<std::uint8_t> stages{core};
  if (shape.releasable && stage == AdoptionStage::time) stages.push_back(core | buffer);
  if (shape.lane == LaneUse::borrows && !state.index->lane.empty() && !lane_is_wanted(state)) {
    stages.push_back(stages.back() | lane);
  }
  return stages;
}

std::uint8_t allowed_roles(const PoolState& state, const Shape& shape) {
  return role_stages(state, shape).back();
}

bool names_model(const std::vector<std::string>& models, const std::string& model) {
  return models.empty() || std::find(models.begin(), models.end(), model) != models.end();
}

std::vector<ModelId> allowed_models(const PoolState& state, const Request& request) {
  std::vector<ModelId> out;
  for (std::uint16_t m = 0; m < state.models.size(); ++m) {
    const ModelState& model = state.models[m];
    const bool serves = model.per_node > 0 && model.memory >= request.memory;
    if (serves && names_model(request.models, model.name)) out.push_back(ModelId(m));
  }
  const bool shared = request.share < whole_device;
  std::stable_sort(out.begin(), out.end(), [&](ModelId a, ModelId b) {
    const MiB x = state.models[a.value].memory;
    const MiB y = state.models[b.value].memory;
    return shared ? x > y : x < y;
  });
  return out;
}

Take take_of(const PoolState& state, const Request& request, MiB capacity) {
  const bool alone =
      request.share == whole_device || state.adoption.stage == AdoptionStage::physical ||
      request.memory.value * all_ppm.value > capacity.value * state.spec.prefilter.out_above.value;
  if (alone) return {whole_device, std::max(request.memory, MiB(1))};
  return {request.share, request.memory};
}

namespace {
bool is_kin(const Request& a, const Request& b) {
  return !b.near.weights.empty() && a.near.weights == b.near.weights;
}
}  // namespace

NodeRoom room_of(const PoolState& state, NodeId id, const Shape& shape) {
  const NodeState& node = state.node(id);
  const std::uint8_t roles = is_kept_off(state, shape, id) ? 0 : allowed_roles(state, shape);
  const GroupIndex* group = group_index(state, shape);
  NodeRoom room{id, {}, free_host(node)};
  room.devices.reserve(static_cast<std::size_t>(node.count));
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceId d(node.first.value + static_cast<std::uint32_t>(i));
    const DeviceState& device = state.device(d);
    DeviceRoom& r = room.devices.emplace_back();
    r.device = d;
    r.role = device.role;
    r.pair = device.pair;
    // What a device could carry says whether a task takes it alone; what is free now does not.
    r.capacity = device.memory - state.spec.device_reserve;
    r.share = free_share(device);
    r.memory = free_memory(state, device);
    r.allowed = is_usable(state, device) && (roles & role_bit(device.role)) != 0 &&
                names_model(shape.request.models, state.models[device.model.value].name) &&
                (group == nullptr || !group->keeps_out(state, shape.request.near.apart, d));
    for (const Tenant& tenant : device.tenants) {
      const Request& other = state.tasks.at(tenant.task).spec.request;
      r.strangers += other.trust_domain != shape.request.trust_domain ? 1 : 0;
      r.kin += is_kin(other, shape.request) ? 1 : 0;
    }
  }
  return room;
}

void take_away(const PoolState& state, const TaskState& tenant, const Shape& shape,
               NodeRoom& room) {
  const Request& other = tenant.spec.request;
  if (needs_host(other)) {
    room.host = room.host.plus(host_part(other, devices_on(state, tenant.slots, room.node)));
  }
  const bool stranger = tenant.spec.request.trust_domain != shape.request.trust_domain;
  for (const Slot& slot : tenant.slots) {
    for (DeviceRoom& device : room.devices) {
      if (device.device != slot.device) continue;
      device.share += slot.share;
      device.memory += slot.memory;
      device.strangers -= stranger ? 1 : 0;
      device.kin -= is_kin(other, shape.request) ? 1 : 0;
    }
  }
}

bool serves(const PoolState& state, const DeviceRoom& device, const Shape& shape) {
  if (!device.allowed || device.strangers > 0) return false;
  const Take take = take_of(state, shape.request, device.capacity);
  if (device.share < take.share || device.memory < take.memory) return false;
  return take.share == whole_device || device.capacity >= state.spec.share_min_memory;
}

namespace {

struct Candidate {
  int stage;
  bool without_kin;
  std::int64_t share, memory;
  std::size_t at;  // in the room
  auto operator<=>(const Candidate&) const = default;
};
using Candidates = std::vector<Candidate>;

// In the order in which they are taken.
Candidates candidates(const PoolState& state, const NodeRoom& room, const Shape& shape,
                      std::uint8_t roles) {
  const auto stages = role_stages(state, shape);
  Candidates fits;
  fits.reserve(room.devices.size());
  for (std::size_t i = 0; i < room.devices.size(); ++i) {
    const DeviceRoom& device = room.devices[i];
    if ((roles & role_bit(device.role)) == 0 || !serves(state, device, shape)) continue;
    const Take take = take_of(state, shape.request, device.capacity);
    int stage = 0;
    while ((stages[static_cast<std::size_t>(stage)] & role_bit(device.role)) == 0) ++stage;
    const bool whole = take.share == whole_device;
    fits.push_back({stage, !whole && device.kin == 0, whole ? 0 : device.share.value,
                    whole ? 0 : device.memory.value, i});
  }
  std::sort(fits.begin(), fits.end());
  return fits;
}

// Candidates by the pair that they are in; one in no pair is by itself. In order of the first.
std::vector<Candidates> by_pair(const NodeRoom& room, const Candidates& fits) {
  std::vector<Candidates> groups;
  for (const Candidate& fit : fits) {
    const std::int32_t pair = room.devices[fit.at].pair;
    const auto same = [&](const Candidates& group) {
      return pair >= 0 && room.devices[group.front().at].pair == pair;
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({fit});
    } else {
      found->push_back(fit);
    }
  }
  return groups;
}

void take_first(const Candidates& from, std::size_t count, Candidates& out) {
  out.insert(out.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
}

// All in one pair: the smallest that has enough.
Candidates within_pair(const NodeRoom& room, const Candidates& fits, std::size_t count) {
  const Candidates* best = nullptr;
  const auto groups = by_pair(room, fits);
  for (const Candidates& group : groups) {
    const bool better = best == nullptr || group.size() < best->size();
    if (group.size() >= count && better) best = &group;
  }
  Candidates chosen;
  if (best != nullptr) take_first(*best, count, chosen);
  return chosen;
}

// Of devices that are equal otherwise: pairs that are taken as a whole, the largest first, and
// only then a part of one.
void take_pairs(const NodeRoom& room, const Candidates& fits, std::size_t count, Candidates& out) {
  auto groups = by_pair(room, fits);
  while (count > 0) {
    auto best = groups.end();
    for (auto at = groups.begin(); at != groups.end(); ++at) {
      if (at->empty()) continue;
      const bool is_first = best == groups.end();
      const bool fits_in = at->size() <= count;
      const bool best_fits_in = !is_first && best->size() <= count;
      const bool better = fits_in ? !best_fits_in || at->size() > best->size()
                                  : !best_fits_in && !is_first && at->size() < best->size();
      if (is_first || better) best = at;
    }
    const std::size_t taken = std::min(count, best->size());
    take_first(*best, taken, out);
    best->clear();
    count -= taken;
  }
}

// Stage by stage; in the last one there is a choice.
Candidates few_links_broken(const NodeRoom& room, const Candidates& fits, std::size_t count) {
  Candidates chosen;
  for (auto begin = fits.begin(); begin != fits.end() && chosen.size() < count;) {
    const auto end = std::find_if(begin, fits.end(),
                                  [&](const Candidate& c) { return c.stage != begin->stage; });
    const Candidates stage(begin, end);
    take_pairs(room, stage, std::min(count - chosen.size(), stage.size()), chosen);
    begin = end;
  }
  return chosen;
}

Candidates choose(const NodeRoom& room, const Shape& shape, const Candidates& fits,
                  std::size_t count) {
  if (fits.size() < count) return {};
  const Cell within = shape.request.near.within;
  if (within == Cell::device && count > 1) return {};
  if (within == Cell::pair) return within_pair(room, fits, count);
  if (fits.front().share == 0) return few_links_broken(room, fits, count);
  return {fits.begin(), fits.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<Slot> slots_on(const PoolState& state, const NodeRoom& room, const Shape& shape,
                           const Candidates& chosen) {
  std::vector<Slot> slots;
  for (const Candidate& fit : chosen) {
    const DeviceRoom& device = room.devices[fit.at];
    Take take = take_of(state, shape.request, device.capacity);
    if (take.share == whole_device) take.memory = device.memory;
    slots.push_back({device.device, take.share, take.memory});
  }
  std::sort(slots.begin(), slots.end(),
            [](const Slot& a, const Slot& b) { return a.device < b.device; });
  return slots;
}

}  // namespace

std::vector<Slot> place_on_node(const PoolState& state, const NodeRoom& room, const Shape& shape,
                                std::int32_t count, std::uint8_t roles) {
  if (needs_host(shape.request) && !room.host.covers(host_part(shape.request, count))) return {};
  const Candidates fits = candidates(state, room, shape, roles);
  const auto wanted = static_cast<std::size_t>(count);
  // All devices of one task are of one model: that of the best candidate which has enough.
  const auto model_of = [&](const Candidate& fit) {
    return state.device(room.devices[fit.at].device).model;
  };
  std::vector<ModelId> tried;
  for (std::size_t first = 0; first + wanted <= fits.size(); ++first) {
    const ModelId model = model_of(fits[first]);
    if (std::find(tried.begin(), tried.end(), model) != tried.end()) continue;
    tried.push_back(model);
    Candidates same;
    for (std::size_t i = first; i < fits.size(); ++i) {
      if (model_of(fits[i]) == model) same.push_back(fits[i]);
    }
    const Candidates chosen = choose(room, shape, same, wanted);
    if (!chosen.empty()) return slots_on(state, room, shape, chosen);
  }
  return {};
}

Split split_of(const Request& request, std::int32_t devices_per_node) {
  if (request.count <= devices_per_node || devices_per_node == 0) return {request.count, 1, 0};
  return {devices_per_node, request.count / devices_per_node, request.count % devices_per_node};
}

}  // namespace neap
