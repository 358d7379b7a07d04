// Room kept for a task that smaller ones pass (docs/decisions/0011): the cell that its tenants
// leave first, claimed before they have left.
#pragma once

#include <optional>
#include <vector>

#include "core/model/state.h"

namespace neap {

// Whether a waiting task is passed by others of its tier or of lighter ones, or would fit in total.
[[nodiscard]] bool needs_room_kept(const PoolState& state, const TaskState& task);

struct Room {
  std::vector<Slot> slots;
  std::vector<Victim> victims;  // who has to leave first, sorted by task; empty: it fits now
  Time expected;                // when they will have left
};
// The node, or for a gang the nodes, that will be free first. Devices that plans claim are left
// alone, so two of these never wait for each other. At most so many nodes are looked at: those
// with the most free devices, and of equals others at another moment. Nothing: none was found
// whose tenants are known to leave.
[[nodiscard]] std::optional<Room> find_room(const PoolState& state, const Shape& shape, Time now);

// Whether what is kept by `plan` is what a heavier demand lacks.
[[nodiscard]] bool stands_in_the_way(const PoolState& state, const Plan& plan, const Shape& demand,
                                     Time now);

}  // namespace neap
