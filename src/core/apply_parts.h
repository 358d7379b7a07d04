// Pieces that several records' effects share. For apply_*.cpp alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/model/pool_index.h"
#include "core/model/state.h"

namespace neap {

// Ended tasks kept for questions; older ones are forgotten (the journal has them).
inline constexpr std::size_t ended_tasks_kept = 10'000;

void change_phase(PoolState& state, TaskState& task, Phase phase);
// Takes and gives back the devices of task.slots.
void occupy(PoolState& state, TaskState& task);
void vacate(PoolState& state, TaskState& task);
// Ends the current allocation; the task waits again or has ended (`phase`).
void end_allocation(PoolState& state, TaskState& task, Phase phase, std::string detail);
// Forgets the plan made for this task, if there is one. Yields asked for it stand.
void drop_plan(PoolState& state, TaskId task);
void leave_plans_of_victim(PoolState& state, TaskId victim);
// The plans that wait for one of these victims: whose claims change when one more plan waits for
// them, or one less. refresh_claims() takes all of them out before, and all in after.
[[nodiscard]] std::set<TaskId> plans_waiting_for(const PoolState& state,
                                                 const std::vector<Victim>& victims);
// A task of this shape was admitted: what comes of late says what is worth keeping free.
void count_arrival(PoolState& state, const Shape& shape);
void refresh_claims_of(PoolState& state, const std::set<TaskId>& plans, std::int32_t sign);
void refresh_devices_of(PoolState& state, const std::set<TaskId>& plans);
// A node of a name that is not known yet, with its devices.
NodeId add_node(PoolState& state, const NodeSpec& spec);
// A new task of this spec, in phase waiting.
// The virtual deadline (POLICIES 4): each preemption buys some of the wait. Only while it is not in
// the queue, which is ordered by it.
void set_due(const PoolState& state, TaskState& task);
TaskState& add_task(PoolState& state, TaskSpec spec, TierId tier);
// A task was admitted: placement takes notice of what is asked for.
void note_arrival(PoolState& state, const Request& request);
// A failed start or crash: waits out a growing pause, or fails for good.
void restart_or_fail(PoolState& state, TaskState& task, const std::string& detail);
[[nodiscard]] std::optional<TierId> find_tier(const PoolSpec& spec, std::string_view name);
[[nodiscard]] TaskState* find_by_allocation(PoolState& state, AllocationId allocation);

}  // namespace neap
