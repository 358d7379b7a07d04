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

// When the last of a plan's victims that stay for a time that is known will have left; `now` when
// there is none. Whoever can be asked leaves when it is asked.
[[nodiscard]] Time needed_at(const Plan& plan, Time now);

// Room that is kept for another task, for as long as that one waits for the last tenants.
struct Loan {
  std::vector<Slot> slots;
  TaskId lender;
  Time leaves_by;  // never: when it is asked
};
// For a task of the lender's tier or a lighter one, on one node. Either it ends before the room is
// needed, by the work that it declared, or it is releasable and has its useful time (POLICIES 1)
// before that; the latter is asked to leave once all others have left. At most `nodes` nodes are
// looked at, which are taken off it.
[[nodiscard]] std::optional<Loan> find_loan(const PoolState& state, const TaskState& task, Time now,
                                            int& nodes);

// Whether what is kept by `plan` is what a heavier demand lacks.
[[nodiscard]] bool stands_in_the_way(const PoolState& state, const Plan& plan, const Shape& demand,
                                     Time now);

}  // namespace neap
