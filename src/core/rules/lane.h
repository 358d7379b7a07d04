// The lane of forced starts (SPEC D6, docs/decisions/0016): which nodes it is, who may borrow it,
// and how long whoever is started there stays. Whole nodes, so that a gang that fits the lane finds
// its nodes there once others have left.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/state.h"

namespace neap {

// Names the field that is wrong.
[[nodiscard]] Result<void> check(const FairnessSpec& fairness, const std::vector<TierSpec>& tiers);

// T_r: borrowers leave within it.
[[nodiscard]] Micros lane_within(const PoolSpec& spec);
// After the time at which a task was to have left: grace, SIGTERM, SIGKILL, and the memory freed.
[[nodiscard]] Micros lane_overrun(const PoolSpec& spec, Micros release);
// From the moment at which a forced task waits until nobody borrows the lane any more.
[[nodiscard]] Micros lane_clearing(const PoolSpec& spec);

// With signals alone, SIGTERM makes it checkpoint: that is on demand too.
[[nodiscard]] bool saves_on_demand(const ContractSpec& contract);

// Of what was declared, so that a promise that was made does not move with what is measured.
[[nodiscard]] Micros lane_stay(const PoolSpec& spec, const TaskSpec& task);    // P
[[nodiscard]] Micros lane_leave(const PoolSpec& spec, const TaskSpec& task);   // I + k + tau
[[nodiscard]] Micros lane_tenure(const PoolSpec& spec, const TaskSpec& task);  // all of it

// Whether an admitted task may borrow: batch that can leave within T_r at any time.
[[nodiscard]] LaneUse lane_use_of(const PoolState& state, const TaskState& task);

// A forced task waits that could start in the lane: nobody may borrow it now.
[[nodiscard]] bool lane_is_wanted(const PoolState& state);

// Slots on the lane alone; empty: there is no room now.
[[nodiscard]] std::vector<Slot> place_in_lane(const PoolState& state, const Shape& shape);
// As place(), for who does not ask why there is no room.
[[nodiscard]] std::vector<Slot> place_if_room(const PoolState& state, const Shape& shape);

// Devices of the lane, sorted: whole nodes from the first on, outside guard and buffer. Who is the
// lane stays it. Nodes with replicas are left out.
[[nodiscard]] std::vector<DeviceId> assign_lane(const PoolState& state);
// What of the devices that are asked for it the pool has room for.
[[nodiscard]] std::int64_t lane_wanted(const PoolState& state);

// Nodes that are the lane and carry nobody but borrowers and those who were started there.
[[nodiscard]] std::vector<NodeId> lane_nodes(const PoolState& state);
// Tasks with a device of the lane, sorted.
[[nodiscard]] std::vector<TaskId> lane_tenants(const PoolState& state);

}  // namespace neap
