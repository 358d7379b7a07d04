#include "simulate/openb/cluster.h"

#include <bit>
#include <utility>

#include "core/model/check.h"

namespace neap::simulate {

Cluster::Cluster(std::vector<Node> nodes) : nodes_(std::move(nodes)) {
  for (const Node& node : nodes_) {
    capacity_ += std::int64_t{node.devices} * whole;
    allocated_ += std::int64_t{node.devices} * whole - node.free;
  }
}

void Cluster::place(const Pod& pod, Choice where) {
  Node& node = nodes_[where.node];
  const Demand& demand = pod.demand;
  NEAP_CHECK(std::popcount(where.devices) == demand.count);
  NEAP_CHECK(node.cpu >= demand.cpu && node.memory >= pod.memory);
  NEAP_CHECK(demand.models == 0 || (demand.models >> node.model & 1U) != 0);
  node.cpu -= demand.cpu;
  node.memory = node.memory - pod.memory;
  for (DeviceMask left = where.devices; left != 0; left &= left - 1) {
    std::int16_t& idle = node.idle[static_cast<std::size_t>(std::countr_zero(left))];
    NEAP_CHECK(idle >= demand.each);
    idle = static_cast<std::int16_t>(idle - demand.each);
  }
  node.unused = static_cast<std::uint16_t>(node.unused & ~where.devices);
  node.free -= demand.milli();
  allocated_ += demand.milli();
  if (demand.count > 0)
    node.kinds |= demand.shares() ? 1U : 1U << static_cast<unsigned>(demand.count);
  ++node.version;
}

void Cluster::remove(const Pod& pod, Choice from) {
  Node& node = nodes_[from.node];
  const Demand& demand = pod.demand;
  node.cpu += demand.cpu;
  node.memory += pod.memory;
  for (DeviceMask left = from.devices; left != 0; left &= left - 1) {
    std::int16_t& idle = node.idle[static_cast<std::size_t>(std::countr_zero(left))];
    idle = static_cast<std::int16_t>(idle + demand.each);
    NEAP_CHECK(idle <= whole);
    if (idle == whole) node.unused = static_cast<std::uint16_t>(node.unused | (left & (~left + 1)));
  }
  node.free += demand.milli();
  allocated_ -= demand.milli();
  ++node.version;
}

DeviceMask first_unused(const Node& node, std::int32_t count) {
  return leftover::lowest(node.unused, count);
}

DeviceMask tightest(const Node& node, std::int32_t each) {
  int best = -1;
  for (int i = 0; i < node.devices; ++i) {
    const std::int32_t idle = node.idle[static_cast<std::size_t>(i)];
    if (idle >= each && (best < 0 || idle < node.idle[static_cast<std::size_t>(best)])) best = i;
  }
  return best < 0 ? 0 : 1U << static_cast<unsigned>(best);
}

DeviceMask usual_devices(const Node& node, const Demand& demand) {
  return demand.shares() ? tightest(node, demand.each) : first_unused(node, demand.count);
}

}  // namespace neap::simulate
