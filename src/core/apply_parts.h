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
// Processes outside the pool hold so much of a device (A2).
void note_foreign_memory(PoolState& state, DeviceId id, MiB used);
// A new task of this spec, in phase waiting.
// The promise of a start is judged anew: it is another wait, or the terms are others.
void judge_promise_anew(PoolState& state, TaskState& task);
void judge_promises_anew(PoolState& state);  // of all that wait
[[nodiscard]] bool has_same_promises(const PoolSpec& a, const PoolSpec& b);
// The virtual deadline (POLICIES 4): each preemption buys some of the wait. Only while it is not in
// the queue, which is ordered by it.
void set_due(const PoolState& state, TaskState& task);
TaskState& add_task(PoolState& state, TaskSpec spec, TierId tier);
// A task was admitted: placement takes notice of what is asked for.
void note_arrival(PoolState& state, const Request& request);
// The pool has other teams than before: who waits does so as a task of its team.
void adopt_teams(PoolState& state);
// How it ended, for people.
[[nodiscard]] std::string exit_text(const TaskExited& e);
// A failed start or crash: waits out a growing pause, or fails for good.
void restart_or_fail(PoolState& state, TaskState& task, const std::string& detail);
// Whether a drill of this service may begin.
[[nodiscard]] Result<void> check_drill(const PoolState& state, const ServiceState& service,
                                       const DrillStarted& started);
[[nodiscard]] std::optional<TierId> find_tier(const PoolSpec& spec, std::string_view name);
void set_pause(PoolState& state, Pause pause);
// What a drill keeps of what happens while it lasts (apply_drill.cpp).
void begin_drill(PoolState& state, const DrillStarted& started);
void withdraw_drill(PoolState& state, const std::string& why);
void end_drill(PoolState& state, const DrillEnded& ended);
void pause_drill(PoolState& state);
void resume_drill(PoolState& state);
void note_pause_in_drill(PoolState& state);
void note_resume_in_drill(PoolState& state);
void note_added_in_drill(PoolState& state, const TaskState& replica);
// It was added because a drill asks for more: no demand brought it.
[[nodiscard]] bool came_for_drill(const PoolState& state, const TaskState& replica);
// Before its plan is gone.
void note_placed_in_drill(PoolState& state, const TaskState& replica,
                          const std::vector<Slot>& slots);
void note_ready_in_drill(PoolState& state, const TaskState& replica);
void note_started_in_drill(PoolState& state, const TaskState& task);
void note_asked_in_drill(PoolState& state, const TaskState& victim);
void note_withdrawn_in_drill(PoolState& state, const TaskState& victim);
void note_forced_in_drill(PoolState& state, const TaskState& victim);
// Its allocation ends, and it goes on in this phase.
void note_left_in_drill(PoolState& state, const TaskState& task, Phase next);
[[nodiscard]] TaskState* find_by_allocation(PoolState& state, AllocationId allocation);

}  // namespace neap
