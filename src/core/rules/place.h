// Placement of whole, fractional and gang requests. The index proposes nodes, the predicate here
// decides; preemption uses the very same predicate on nodes with their victims taken away. What
// depends on one node alone is in the predicate: devices, host, who may be beside whom.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/host.h"
#include "core/model/state.h"

namespace neap {

// Devices a shape may use, as a set of roles, in the order in which they are tried: training
// fills the core first and lendable devices last, inference the guard first and the core last.
// What the stage of adoption keeps from lending is not among them (F8).
[[nodiscard]] std::vector<std::uint8_t> role_stages(const PoolState& state,
                                                    const Shape& shape);  // masks of role_bit
[[nodiscard]] constexpr std::uint8_t role_bit(Role role) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(role));
}
// All roles a shape may use: the union of its stages.
[[nodiscard]] std::uint8_t allowed_roles(const PoolState& state, const Shape& shape);

// Whether a request that names `models` may use devices of this one; naming none, it may use all.
[[nodiscard]] bool names_model(const std::vector<std::string>& models, const std::string& model);
// Models whose devices may serve a request, in the order in which they are tried: shares go to
// those with the most memory, which mix best (A7), whole devices to the smallest that serve.
[[nodiscard]] std::vector<ModelId> allowed_models(const PoolState& state, const Request& request);

// What one device could give to tasks of one shape.
struct DeviceRoom {
  DeviceId device;
  MilliGpu share{0};
  MiB memory{0};
  MiB capacity{0};
  Role role = Role::core;
  bool allowed = false;        // usable, of an allowed model and role, and nobody keeps it away
  std::int32_t strangers = 0;  // tenants of another trust domain; none may remain (A6)
  std::int32_t pair = -1;
  std::int32_t kin = 0;  // tenants with the same weights
};

struct NodeRoom {
  NodeId node;
  std::vector<DeviceRoom> devices;
  HostPart host;  // free
};

[[nodiscard]] NodeRoom room_of(const PoolState& state, NodeId node, const Shape& shape);
// As if `tenant` had left the node.
void take_away(const PoolState& state, const TaskState& tenant, const Shape& shape, NodeRoom& room);

// The share and memory that a request takes of a device with `capacity`: a task that uses most
// of the memory takes the device alone (A2), and a whole share takes all memory.
struct Take {
  MilliGpu share{0};
  MiB memory{0};
};
[[nodiscard]] Take take_of(const PoolState& state, const Request& request, MiB capacity);

// True if this device alone could serve one device's part of the request.
[[nodiscard]] bool serves(const PoolState& state, const DeviceRoom& device, const Shape& shape);

// `count` devices of this node for one task; empty when they, or its part of the host, are not
// there. Devices of roles in `roles` only, in order of role stage. Shares: beside the same weights
// first, then the fullest. Whole devices: linked ones together, and few links broken.
[[nodiscard]] std::vector<Slot> place_on_node(const PoolState& state, const NodeRoom& room,
                                              const Shape& shape, std::int32_t count,
                                              std::uint8_t roles);

struct Placement {
  std::vector<Slot> slots;        // empty: it does not fit now
  WaitCode why = WaitCode::none;  // then this is what is short
};
[[nodiscard]] Placement place(const PoolState& state, const Shape& shape);

// The devices of a request that spans nodes, as (devices per node, nodes, remainder): whole
// nodes of `per_node` devices and one node for the rest. A request that fits a node is (count, 1,
// 0).
struct Split {
  std::int32_t per_node = 0;
  std::int32_t nodes = 0;
  std::int32_t remainder = 0;
};
[[nodiscard]] Split split_of(const Request& request, std::int32_t devices_per_node);

}  // namespace neap
