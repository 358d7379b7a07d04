#include "core/model/host.h"

#include <algorithm>

#include "core/model/pool_index.h"

namespace neap {

namespace {

// More than all tasks of a node together can ask for, and far from overflow.
constexpr std::int64_t plenty = std::int64_t{1} << 50;

std::int64_t part(std::int64_t all, std::int32_t devices, std::int32_t count) {
  return (all * devices + count - 1) / count;
}

HostPart times(const HostPart& host, std::int32_t sign) {
  return {host.cpu * sign, host.memory * sign};
}

}  // namespace

HostPart host_part(const Request& request, std::int32_t devices) {
  return {part(request.cpu_milli, devices, request.count),
          MiB(part(request.host_memory.value, devices, request.count))};
}

std::int32_t devices_for(const Request& request, const HostPart& host) {
  std::int64_t most = request.count;
  if (request.cpu_milli > 0) {
    // Where it is plenty, the product would say no more.
    const std::int64_t cpu = std::clamp<std::int64_t>(host.cpu, 0, request.cpu_milli);
    most = std::min(most, cpu * request.count / request.cpu_milli);
  }
  if (request.host_memory.value > 0) {
    const std::int64_t memory =
        std::clamp<std::int64_t>(host.memory.value, 0, request.host_memory.value);
    most = std::min(most, memory * request.count / request.host_memory.value);
  }
  return static_cast<std::int32_t>(most);
}

bool needs_host(const Request& request) {
  return request.cpu_milli > 0 || request.host_memory.value > 0;
}

HostPart whole_host(const NodeState& node) {
  return {node.cpu_milli == 0 ? plenty : node.cpu_milli,
          node.memory.value == 0 ? MiB(plenty) : node.memory};
}

HostPart free_host(const NodeState& node) {
  HostPart host = whole_host(node);
  if (node.cpu_milli != 0) host.cpu -= node.used_cpu + node.held_cpu;
  if (node.memory.value != 0) host.memory -= node.used_memory + node.held_memory;
  return host;
}

std::vector<NodePart> parts_of(const PoolState& state, const std::vector<Slot>& slots) {
  std::vector<NodePart> parts;
  for (const Slot& slot : slots) {
    const NodeId node = state.device(slot.device).node;
    if (parts.empty() || parts.back().node != node) parts.push_back({node, 0});
    ++parts.back().devices;
  }
  return parts;
}

std::int32_t devices_on(const PoolState& state, const std::vector<Slot>& slots, NodeId node) {
  return static_cast<std::int32_t>(std::count_if(slots.begin(), slots.end(), [&](const Slot& slot) {
    return state.device(slot.device).node == node;
  }));
}

HostPart held_of(const PoolState& state, const Plan& plan, const NodePart& part) {
  HostPart left = host_part(state.tasks.at(plan.task).spec.request, part.devices);
  for (const Victim& victim : plan.victims) {
    if (!counts_for(state, plan, victim)) continue;
    const TaskState& task = state.tasks.at(victim.task);
    left = left.minus(host_part(task.spec.request, devices_on(state, task.slots, part.node)));
  }
  return {std::max<std::int64_t>(0, left.cpu), std::max(MiB(0), left.memory)};
}

bool hosts_cover(const PoolState& state, const Plan& plan) {
  const Request& request = state.tasks.at(plan.task).spec.request;
  if (!needs_host(request)) return true;
  const auto parts = parts_of(state, plan.slots);
  return std::all_of(parts.begin(), parts.end(), [&](const NodePart& p) {
    HostPart leaving;
    for (const Victim& victim : plan.victims) {
      const TaskState& task = state.tasks.at(victim.task);
      leaving = leaving.plus(host_part(task.spec.request, devices_on(state, task.slots, p.node)));
    }
    const HostPart free = free_host(state.node(p.node)).plus(held_of(state, plan, p));
    return free.plus(leaving).covers(host_part(request, p.devices));
  });
}

void count_host(PoolState& state, const TaskState& task, std::int32_t sign) {
  const Request& request = task.spec.request;
  if (!needs_host(request)) return;
  for (const NodePart& p : parts_of(state, task.slots)) {
    const HostPart taken = times(host_part(request, p.devices), sign);
    NodeState& node = state.nodes[p.node.value];
    node.used_cpu += taken.cpu;
    node.used_memory += taken.memory;
  }
}

void refresh_host_claims(PoolState& state, const Plan& plan, std::int32_t sign) {
  const Request& request = state.tasks.at(plan.task).spec.request;
  if (!needs_host(request)) return;
  for (const NodePart& p : parts_of(state, plan.slots)) {
    const HostPart claimed = host_part(request, p.devices);
    const HostPart held = held_of(state, plan, p);
    NodeState& node = state.nodes[p.node.value];
    node.claimed_cpu += sign * claimed.cpu;
    node.claimed_memory += claimed.memory * sign;
    node.held_cpu += sign * held.cpu;
    node.held_memory += held.memory * sign;
  }
}

}  // namespace neap
