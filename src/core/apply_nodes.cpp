// Nodes and devices that the pool has not seen before.
#include <algorithm>
#include <unordered_map>

#include "core/apply_parts.h"

namespace neap {

namespace {

using Positions = std::unordered_map<std::string, std::uint32_t>;

std::uint32_t intern(std::vector<std::string>& names, Positions& positions,
                     const std::string& name) {
  const auto next = static_cast<std::uint32_t>(names.size());
  const auto [at, is_new] = positions.emplace(name, next);
  if (is_new) names.push_back(name);
  return at->second;
}

// A rack is within its fault domain; a node without one is a rack of its own.
std::string rack_name(const NodeSpec& spec) {
  return spec.fault_domain + "/" + (spec.rack.empty() ? "node " + spec.name : spec.rack);
}

ModelId intern_model(PoolState& state, const DeviceSpec& spec) {
  for (std::size_t m = 0; m < state.models.size(); ++m) {
    if (state.models[m].name == spec.model && state.models[m].memory == spec.memory) {
      return ModelId(static_cast<std::uint16_t>(m));
    }
  }
  state.models.push_back({spec.model, spec.memory, 0});
  state.index->models.emplace_back();
  return ModelId(static_cast<std::uint16_t>(state.models.size() - 1));
}

void add_device(PoolState& state, NodeId node, std::int32_t i, const DeviceSpec& spec) {
  PoolIndex& index = *state.index;
  const DeviceId id(static_cast<std::uint32_t>(state.devices.size()));
  DeviceState& device = state.devices.emplace_back();
  device.node = node;
  device.index = i;
  device.uuid = spec.uuid;
  device.memory = spec.memory;
  device.model = intern_model(state, spec);
  device.pair = spec.pair;
  device.role = spec.dedicated ? Role::dedicated : Role::core;
  index.device_keys.emplace_back();
  ++index.models[device.model.value].devices;
  auto& counts = index.node_counts[node.value];
  const bool first_of_model = std::none_of(counts.begin(), counts.end(),
                                           [&](const auto& c) { return c.model == device.model; });
  if (first_of_model) {
    counts.push_back({device.model, {}, {}});
    for (auto& buckets : index.models[device.model.value].whole) {
      if (buckets.empty()) buckets.resize(1);
      buckets[0].insert(node.value);
    }
  }
  const auto same = std::count_if(state.devices.end() - (i + 1), state.devices.end(),
                                  [&](const DeviceState& d) { return d.model == device.model; });
  ModelState& model = state.models[device.model.value];
  if (same > model.per_node) {
    model.per_node = static_cast<std::int32_t>(same);
    recount_full_nodes(state, device.model);
  }
  refresh_device(state, id);
}

}  // namespace

NodeId add_node(PoolState& state, const NodeSpec& spec) {
  PoolIndex& index = *state.index;
  const NodeId id(static_cast<std::uint32_t>(state.nodes.size()));
  NodeState& node = state.nodes.emplace_back();
  node.name = spec.name;
  const std::uint32_t domain = intern(state.domains, index.domain_names, spec.fault_domain);
  node.domain = DomainId(static_cast<std::uint16_t>(domain));
  node.rack = RackId(intern(state.racks, index.rack_names, rack_name(spec)));
  node.cpu_milli = spec.cpu_milli;
  node.memory = spec.memory;
  node.first = DeviceId(static_cast<std::uint32_t>(state.devices.size()));
  node.count = static_cast<std::int32_t>(spec.devices.size());
  index.node_counts.emplace_back();
  index.free_hosts.push_back(free_host(node));
  index.rack_nodes.resize(state.racks.size());
  index.rack_nodes[node.rack.value].push_back(id);
  index.domain_nodes.resize(state.domains.size());
  index.domain_nodes[node.domain.value].push_back(id);
  index.node_names.emplace(node.name, id);
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    add_device(state, id, static_cast<std::int32_t>(i), spec.devices[i]);
  }
  return id;
}

void note_foreign_memory(PoolState& state, DeviceId id, MiB used) {
  DeviceState& device = state.devices[id.value];
  device.foreign = used;
  for (const auto& [task, plan] : state.plans) state.index->agenda.plans.insert(task);
  const bool low =
      used.value * all_ppm.value < device.memory.value * state.spec.prefilter.back_below.value;
  if (!device.excluded || !low) {
    device.foreign_low_since = Time::never();
    set_timer(state, TimerKind::device, id.value, Time::never());
  } else if (device.foreign_low_since == Time::never()) {
    device.foreign_low_since = state.now;
    set_timer(state, TimerKind::device, id.value, state.now + state.spec.prefilter.back_after);
  }
  state.index->agenda.devices.insert(id);
  refresh_device(state, id);
}

}  // namespace neap
