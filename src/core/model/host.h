// CPU and memory of nodes, which tasks take beside devices (C1). A node that does not say how much
// it has is never short of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/state.h"

namespace neap {

struct HostPart {
  std::int64_t cpu = 0;  // milli
  MiB memory{0};
  bool operator==(const HostPart&) const = default;
  // What is not asked for is never short, even where more was given out than there is.
  [[nodiscard]] bool covers(const HostPart& o) const {
    return (o.cpu <= 0 || cpu >= o.cpu) && (o.memory <= MiB(0) || memory >= o.memory);
  }
  [[nodiscard]] HostPart plus(const HostPart& o) const { return {cpu + o.cpu, memory + o.memory}; }
  [[nodiscard]] HostPart minus(const HostPart& o) const { return {cpu - o.cpu, memory - o.memory}; }
};

// What a request takes of a node that gives it so many of its devices: its part, rounded up.
[[nodiscard]] HostPart host_part(const Request& request, std::int32_t devices);
// For how many of its devices this much is enough: at most all of them.
[[nodiscard]] std::int32_t devices_for(const Request& request, const HostPart& host);
[[nodiscard]] bool needs_host(const Request& request);

// Free for anyone; more than anybody asks for where the node does not say.
[[nodiscard]] HostPart free_host(const NodeState& node);
// Were nothing running on it.
[[nodiscard]] HostPart whole_host(const NodeState& node);

// Devices of one node among slots, which stand together.
struct NodePart {
  NodeId node;
  std::int32_t devices = 0;
};
[[nodiscard]] std::vector<NodePart> parts_of(const PoolState& state,
                                             const std::vector<Slot>& slots);
[[nodiscard]] std::int32_t devices_on(const PoolState& state, const std::vector<Slot>& slots,
                                      NodeId node);

// What nobody else may take of a node for a plan: beyond what its own victims still have there.
[[nodiscard]] HostPart held_of(const PoolState& state, const Plan& plan, const NodePart& part);
// Whether what a plan claims of hosts is there once its victims have left: a node may have come
// back with less.
[[nodiscard]] bool hosts_cover(const PoolState& state, const Plan& plan);

// ---- for apply -------------------------------------------------------------------------------

// What a task's slots take, or (sign -1) give back.
void count_host(PoolState& state, const TaskState& task, std::int32_t sign);
// What a plan claims, and what of it is held: beyond what its own victims still have there.
void refresh_host_claims(PoolState& state, const Plan& plan, std::int32_t sign);

}  // namespace neap
