#include "core/testing/place_oracle.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace neap::testing {

namespace {

const NodeState& node_of(const PoolState& state, DeviceId device) {
  return state.node(state.device(device).node);
}

bool same_cell(const PoolState& state, Cell cell, DeviceId a, DeviceId b) {
  const DeviceState& x = state.device(a);
  const DeviceState& y = state.device(b);
  switch (cell) {
    case Cell::any:
      return true;
    case Cell::device:
      return a == b;
    case Cell::pair:
      return a == b || (x.node == y.node && x.pair >= 0 && x.pair == y.pair);
    case Cell::node:
      return x.node == y.node;
    case Cell::rack:
      return node_of(state, a).rack == node_of(state, b).rack;
    case Cell::domain:
      return node_of(state, a).domain == node_of(state, b).domain;
  }
  return false;
}

struct Holder {
  const TaskSpec* spec = nullptr;
  const std::vector<Slot>* slots = nullptr;
};

// Who of the shape's group holds devices, or has them claimed.
std::vector<Holder> group_of_shape(const PoolState& state, const Shape& shape) {
  std::vector<Holder> out;
  if (shape.request.near.group.empty()) return out;
  const auto is_member = [&](const TaskSpec& spec) {
    return !spec.request.near.group.empty() &&
           spec.team + "/" + spec.request.near.group == shape.request.near.group;
  };
  state.tasks.for_each([&](const TaskState& task) {
    if (is_member(task.spec) && holds_devices(task.phase)) out.push_back({&task.spec, &task.slots});
  });
  for (const auto& [id, plan] : state.plans) {
    const TaskSpec& spec = state.tasks.at(id).spec;
    if (is_member(spec)) out.push_back({&spec, &plan.slots});
  }
  return out;
}

bool holds_in(const PoolState& state, const Holder& holder, Cell cell, DeviceId device) {
  return std::any_of(holder.slots->begin(), holder.slots->end(),
                     [&](const Slot& slot) { return same_cell(state, cell, slot.device, device); });
}

bool kept_off(const PoolState& state, const Shape& shape, DeviceId device) {
  const Nearness& near = shape.request.near;
  const std::string& name = node_of(state, device).name;
  if (std::find(near.exclude.begin(), near.exclude.end(), name) != near.exclude.end()) return true;
  std::int32_t in_domain = 0;
  for (const Holder& holder : group_of_shape(state, shape)) {
    const Cell apart = std::max(near.apart, holder.spec->request.near.apart);
    if (apart != Cell::any && holds_in(state, holder, apart, device)) return true;
    in_domain += holds_in(state, holder, Cell::domain, device) ? 1 : 0;
  }
  return near.per_domain > 0 && in_domain >= near.per_domain;
}

bool takes_all(const PoolState& state, const Request& request, const DeviceState& device) {
  const MiB usable = device.memory - state.spec.device_reserve;
  return request.share == whole_device ||
         request.memory.value * all_ppm.value > usable.value * state.spec.prefilter.out_above.value;
}

bool may_use(const PoolState& state, const Shape& shape, DeviceId id) {
  const DeviceState& device = state.device(id);
  const Request& request = shape.request;
  if (device.health != DeviceHealth::healthy || device.excluded) return false;
  if (!state.node(device.node).up || !state.node(device.node).reachable) return false;
  if (shape.dedicated != (device.role == Role::dedicated)) return false;
  if (device.role == Role::lane && shape.lane == LaneUse::none) return false;
  if (shape.purpose != Purpose::inference) {
    if (device.role == Role::guard) return false;
    if (device.role == Role::buffer && !shape.releasable) return false;
  }
  const std::string& model = state.models[device.model.value].name;
  if (!request.models.empty() &&
      std::find(request.models.begin(), request.models.end(), model) == request.models.end()) {
    return false;
  }
  for (const Tenant& tenant : device.tenants) {
    const Request& other = state.tasks.at(tenant.task).spec.request;
    if (other.trust_domain != request.trust_domain) return false;
  }
  return !kept_off(state, shape, id);
}

bool fits(const PoolState& state, const Shape& shape, DeviceId id) {
  if (!may_use(state, shape, id)) return false;
  const DeviceState& device = state.device(id);
  const bool all = takes_all(state, shape.request, device);
  const MiB usable = device.memory - state.spec.device_reserve;
  if (!all && usable < state.spec.share_min_memory) return false;
  const MilliGpu share = all ? whole_device : shape.request.share;
  const MiB memory = std::max(shape.request.memory, MiB(all ? 1 : 0));
  return free_share(device) >= share && free_memory(state, device) >= memory;
}

std::int64_t part(std::int64_t all, std::int32_t devices, std::int32_t count) {
  const std::int64_t product = all * devices;
  return product / count + (product % count == 0 ? 0 : 1);
}

// Free CPU and memory, from all who are there: what a plan claims beyond its victims' is not free.
struct Host {
  std::int64_t cpu = 0, memory = 0;
};
Host free_on(const PoolState& state, NodeId id) {
  const NodeState& node = state.node(id);
  return {node.cpu_milli - node.used_cpu - node.held_cpu,
          (node.memory - node.used_memory - node.held_memory).value};
}

bool host_covers(const PoolState& state, const Shape& shape, NodeId id, std::int32_t devices) {
  const NodeState& node = state.node(id);
  const Request& request = shape.request;
  const Host host = free_on(state, id);
  const bool cpu = node.cpu_milli == 0 || request.cpu_milli == 0 ||
                   part(request.cpu_milli, devices, request.count) <= host.cpu;
  const bool memory = node.memory.value == 0 || request.host_memory.value == 0 ||
                      part(request.host_memory.value, devices, request.count) <= host.memory;
  return cpu && memory;
}

// The most devices of one model that a node can give to one task; `count` at most.
std::int32_t most_of(const PoolState& state, const Shape& shape, NodeId id, ModelId model) {
  const NodeState& node = state.node(id);
  std::vector<DeviceId> free;
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceId d(node.first.value + static_cast<std::uint32_t>(i));
    if (state.device(d).model == model && fits(state, shape, d)) free.push_back(d);
  }
  const Cell within = shape.request.near.within;
  std::size_t most = 0;
  for (const DeviceId first : free) {
    // Cells above the node are no limit on it.
    const Cell cell = within == Cell::any || within > Cell::node ? Cell::node : within;
    most = std::max(
        most, static_cast<std::size_t>(std::count_if(free.begin(), free.end(), [&](DeviceId other) {
          return same_cell(state, cell, first, other);
        })));
  }
  auto devices = std::min(static_cast<std::int32_t>(most), shape.request.count);
  while (devices > 0 && !host_covers(state, shape, id, devices)) --devices;
  return devices;
}

// All devices of one node that has the most of a model.
std::int32_t per_node(const PoolState& state, ModelId model) {
  std::map<NodeId, std::int32_t> counts;
  std::int32_t most = 0;
  for (const DeviceState& device : state.devices) {
    if (device.model == model) most = std::max(most, ++counts[device.node]);
  }
  return most;
}

bool node_is_kept_off(const PoolState& state, const Shape& shape, NodeId id) {
  Nearness near = shape.request.near;
  if (near.apart < Cell::node) near.apart = Cell::any;
  const DeviceId device = state.node(id).first;
  if (std::find(near.exclude.begin(), near.exclude.end(), state.node(id).name) !=
      near.exclude.end()) {
    return true;
  }
  std::int32_t in_domain = 0;
  for (const Holder& holder : group_of_shape(state, shape)) {
    if (near.apart != Cell::any && holds_in(state, holder, near.apart, device)) return true;
    in_domain += holds_in(state, holder, Cell::domain, device) ? 1 : 0;
  }
  return near.per_domain > 0 && in_domain >= near.per_domain;
}

// Equal parts of a gang, and one node for the rest.
struct EqualParts {
  std::int32_t size = 0, nodes = 0, rest = 0;
};
EqualParts equal_parts(const PoolState& state, const Shape& shape, ModelId model) {
  const std::int32_t size = per_node(state, model);
  return {size, shape.request.count / size, shape.request.count % size};
}

// Whether as many nodes could ever give such parts, if nothing ran.
bool could_be_equal(const PoolState& state, const Shape& shape, ModelId model) {
  const EqualParts parts = equal_parts(state, shape, model);
  std::int32_t nodes = 0;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeState& node = state.nodes[n];
    std::int32_t usable = 0;
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& device = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
      const bool role =
          shape.dedicated ? device.role == Role::dedicated
          : shape.purpose == Purpose::inference
              ? device.role != Role::dedicated
              : device.role == Role::core || (device.role == Role::buffer && shape.releasable);
      const bool works =
          device.health == DeviceHealth::healthy && !device.excluded && node.up && node.reachable;
      usable += role && works && device.model == model ? 1 : 0;
    }
    const Request& request = shape.request;
    const auto covers = [&](std::int32_t devices) {
      const bool cpu = node.cpu_milli == 0 || request.cpu_milli == 0 ||
                       part(request.cpu_milli, devices, request.count) <= node.cpu_milli;
      const bool memory =
          node.memory.value == 0 || request.host_memory.value == 0 ||
          part(request.host_memory.value, devices, request.count) <= node.memory.value;
      return cpu && memory;
    };
    nodes +=
        usable >= parts.size && covers(parts.size) && !node_is_kept_off(state, shape, NodeId(n))
            ? 1
            : 0;
  }
  return nodes >= parts.nodes + (parts.rest > 0 ? 1 : 0);
}

// By the most that each node of one cell can give.
bool gives_equal(const std::vector<std::int32_t>& most, const EqualParts& parts) {
  const auto full =
      std::count_if(most.begin(), most.end(), [&](std::int32_t m) { return m >= parts.size; });
  const auto rest =
      std::count_if(most.begin(), most.end(), [&](std::int32_t m) { return m >= parts.rest; });
  return full >= parts.nodes && (parts.rest == 0 || rest > parts.nodes);
}

bool model_serves(const PoolState& state, const Shape& shape, ModelId model) {
  const std::int32_t count = shape.request.count;
  const bool spans = count > per_node(state, model);
  const Cell within = shape.request.near.within;
  if (spans && within != Cell::any && within <= Cell::node) return false;
  if (spans && shape.request.share < whole_device) {
    const auto all = std::all_of(state.devices.begin(), state.devices.end(), [&](const auto& d) {
      return d.model != model || takes_all(state, shape.request, d);
    });
    if (!all) return false;  // shares do not span nodes
  }
  // By the cell that the nodes of a gang are to be in: what each of them can give.
  std::map<std::uint32_t, std::vector<std::int32_t>> cells;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeState& node = state.nodes[n];
    const std::int32_t most = most_of(state, shape, NodeId(n), model);
    if (!spans && most >= count) return true;
    const std::uint32_t cell = within == Cell::rack     ? node.rack.value
                               : within == Cell::domain ? node.domain.value
                                                        : 0;
    cells[cell].push_back(most);
  }
  if (!spans) return false;
  const bool equal = could_be_equal(state, shape, model);
  return std::any_of(cells.begin(), cells.end(), [&](const auto& cell) {
    const std::vector<std::int32_t>& most = cell.second;
    if (equal) return gives_equal(most, equal_parts(state, shape, model));
    return std::accumulate(most.begin(), most.end(), std::int32_t{0}) >= count;
  });
}

std::string fault_of_nodes(const PoolState& state, const Shape& shape,
                           const std::vector<Slot>& slots) {
  std::map<NodeId, std::int32_t> parts;
  for (const Slot& slot : slots) ++parts[state.device(slot.device).node];
  for (const auto& [node, devices] : parts) {
    if (!host_covers(state, shape, node, devices)) return "a host is too small";
  }
  const ModelId model = state.device(slots.front().device).model;
  if (parts.size() > 1 && shape.request.count <= per_node(state, model)) {
    return "spread over nodes, though a node has as many";
  }
  return {};
}

}  // namespace

std::string fault_of(const PoolState& state, const Shape& shape, const std::vector<Slot>& slots) {
  if (slots.size() != static_cast<std::size_t>(shape.request.count)) return "not so many devices";
  std::set<DeviceId> devices;
  for (const Slot& slot : slots) {
    const DeviceState& device = state.device(slot.device);
    const bool all = takes_all(state, shape.request, device);
    if (!devices.insert(slot.device).second) return "one device twice";
    if (device.model != state.device(slots.front().device).model) return "several models";
    if (!fits(state, shape, slot.device)) return "a device that it may not use, or too full";
    if (slot.share != (all ? whole_device : shape.request.share)) return "another share";
    if (slot.memory < shape.request.memory) return "less memory";
    if (!same_cell(state, shape.request.near.within, slot.device, slots.front().device)) {
      return "not within one cell";
    }
  }
  return fault_of_nodes(state, shape, slots);
}

bool can_be_placed(const PoolState& state, const Shape& shape) {
  for (std::uint16_t m = 0; m < state.models.size(); ++m) {
    if (model_serves(state, shape, ModelId(m))) return true;
  }
  return false;
}

}  // namespace neap::testing
