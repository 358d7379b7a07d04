// Derived from the state and kept by apply: where capacity is free by shape, who waits in what
// order, what is due when, and what decide() has to look at. Rebuilt, it is the same.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/model/cell_index.h"
#include "core/model/group_index.h"
#include "core/model/host.h"
#include "core/model/id_set.h"
#include "core/model/state.h"
#include "core/model/victim_bounds.h"

namespace neap {

class PlacementIndex;  // core/rules/place/placement_index.h
class TeamIndex;       // core/model/team_index.h

inline constexpr std::size_t role_count = 5;
// The sets of roles that a search may span (rules/place.h), as masks of 1 << role.
inline constexpr std::array<std::uint8_t, 10> role_masks{1, 2, 3, 4, 6, 7, 8, 16, 17, 19};

// Free capacity of one device model.
struct ModelIndex {
  // whole[mask][f]: nodes with exactly f wholly free devices of this model and these roles.
  std::array<std::vector<IdSet>, role_masks.size()> whole;
  std::array<std::uint32_t, role_masks.size()> free_whole{};  // devices, over all nodes
  // partial[role]: partly used devices, by free share, then by free memory.
  using ByMemory = std::set<std::pair<std::int64_t, std::uint32_t>>;
  std::array<std::map<std::int64_t, ByMemory>, role_count> partial;
  std::uint32_t devices = 0;                       // usable or not
  std::array<std::uint32_t, role_count> usable{};  // usable devices
  std::array<CellCounts, role_masks.size()> cells;
  // open[role]: nodes where a device of this role is free in part at least, by fault domain.
  std::array<std::set<std::pair<DomainId, NodeId>>, role_count> open;
  std::array<std::int64_t, role_count> free_milli{};  // of usable devices, wholly free or not
  bool operator==(const ModelIndex&) const = default;
};

// Order inside one shape; across shapes the tier comes first.
struct QueueKey {
  Time due;  // the virtual deadline
  Time submitted;
  TaskId task;
  auto operator<=>(const QueueKey&) const = default;
};

// Order of forced tasks: those with a promise first, then by the time at which they are forced.
// Rank 1: no start is promised, but they may have devices of the lane; 2: they may not.
struct WaitKey {
  std::uint8_t rank = 0;
  Time forced_at;
  TaskId task;
  auto operator<=>(const WaitKey&) const = default;
};

enum class TimerKind : std::uint8_t {
  task,
  shape,
  device,
  guard,
  plan,
  look,
  tide,
  drill,
  loading,
  starts
};
using TimerKey = std::tuple<Time, TimerKind, std::uint32_t>;

struct PoolIndex {
  std::vector<ModelIndex> models;
  struct DeviceKey {  // how a device stands in `models` now
    bool usable = false, whole = false, partial = false;
    Role role = Role::core;
    std::int64_t share = 0, memory = 0;
    [[nodiscard]] bool is_open() const { return whole || partial; }
    bool operator==(const DeviceKey&) const = default;
  };
  std::vector<DeviceKey> device_keys;
  struct NodeCount {
    ModelId model;
    std::array<std::uint8_t, role_masks.size()> free{};
    std::array<std::uint8_t, role_count> open{};  // devices that are free in part at least
    bool operator==(const NodeCount&) const = default;
  };
  std::vector<std::vector<NodeCount>> node_counts;  // by node, one per model on it
  std::uint32_t usable_shared = 0;                  // usable devices outside the dedicated part
  std::uint32_t training_on_guard = 0;              // guard devices with training tenants

  std::vector<HostPart> free_hosts;                           // by node
  std::vector<std::vector<NodeId>> rack_nodes, domain_nodes;  // by rack, by fault domain
  std::map<std::string, GroupIndex> groups;                   // by group_of()
  // By name of the weights: devices whose tenants have them, and how many of those.
  std::map<std::string, std::map<DeviceId, std::uint32_t>> weights;

  std::vector<std::set<QueueKey>>
      waiting;  // by shape: those that could start now if there were room
  IdSet waiting_shapes;
  std::set<std::tuple<TierId, QueueKey>> waiters;  // all of them
  std::set<TaskId> reserved, moving;               // tasks with a plan of that kind; or resize
  std::set<TaskId> ranged;                         // running, with a range of devices
  std::shared_ptr<TeamIndex> teams;  // what each team has; none where the pool has no teams
  std::set<DeviceId> lane;           // its devices, usable or not
  std::set<WaitKey> promised;  // wait, with a start that is promised, or are to be forced without
  std::set<TaskId> near_deadline;  // wait, with a deadline that was accepted
  std::set<TaskId> infeasible;     // wait, and no start could be promised
  std::set<TimerKey> timers;
  std::unordered_map<std::uint64_t, Time> timer_of;          // kind << 32 | id
  std::unordered_map<std::string, ShapeId> shape_ids;        // by encoded shape
  std::map<std::string, TaskId, std::less<>> task_names;     // not ended
  std::unordered_map<std::string, ServiceId> service_names;  // not removed
  std::unordered_map<std::string, NodeId> node_names;
  std::unordered_map<std::string, std::uint32_t> domain_names, rack_names;
  std::unordered_map<AllocationId, TaskId> allocations;  // holding devices
  std::map<TaskId, std::set<TaskId>> plans_of_victim;    // victim -> the plans' tasks
  std::set<TaskId> leaving;                              // yielding or stopping
  std::set<TaskId> loading;                              // training that has not loaded yet
  std::set<std::pair<Time, TaskId>> ended;               // oldest first
  std::map<std::tuple<TierId, std::uint8_t>, std::uint32_t> running_by_tier;  // (tier, purpose)
  VictimBounds victims;
  IdSet placement_touched;  // nodes of which `placement` has not seen the last change
  std::shared_ptr<PlacementIndex> placement;
  std::int64_t settle_allowance = 0;  // see settle_victim_bounds()

  // What changed since decide() last looked. Everything is marked after a rebuild.
  struct Agenda {
    IdSet shapes, services;
    std::set<TaskId> admit;          // submitted, not judged yet
    std::set<TaskId> plans;          // a victim left, or a claimed device changed
    std::set<TaskId> attention;      // asked to stop, unhealthy, or reached a boundary
    std::set<DeviceId> devices;      // foreign memory or health changed
    std::set<PipelineId> pipelines;  // a stage's task or service changed
    std::set<TaskId> bounds;         // wait, and it was not judged whether a start is promised
    bool roles = false, guard = false;
    bool deadlines = false;  // somebody may have come near one
    bool adoption = false;   // training is where the stage of adoption no longer has it
  } agenda;
};

// Rebuilds everything derived: the index, tenants and sums of devices.
void rebuild_index(PoolState& state);
// True if what is derived equals what a rebuild makes of the state (agenda apart).
[[nodiscard]] bool index_is_current(const PoolState& state);

// ---- for apply -------------------------------------------------------------------------------

[[nodiscard]] std::size_t mask_slot(std::uint8_t mask);  // position in role_masks
// After any change of a device's tenants, claims, health, role or foreign memory; its node's host
// is looked at too.
void refresh_device(PoolState& state, DeviceId id);
// Waits and could start: in the queue. Called after any change of phase, plan or backoff.
void refresh_queue(PoolState& state, const TaskState& task);
// Whether it waits with a start that is promised, or near a deadline. Part of refresh_queue().
void refresh_promise(PoolState& state, const TaskState& task);
// Before `bound` or `forced_at` changes.
void forget_promise(PoolState& state, const TaskState& task);
// Out of it, before the shape of a task that waits changes.
void leave_queue(PoolState& state, const TaskState& task);
// The group and the weights of a task that holds these slots, or for which a plan claims them
// (`sign` 1), or no longer does (-1). Weights are there once it holds them.
void count_in_group(PoolState& state, const TaskState& task, const std::vector<Slot>& slots,
                    std::int32_t sign);
void count_weights(PoolState& state, const TaskState& task, std::int32_t sign);
[[nodiscard]] inline QueueKey queue_key(const TaskState& task) {
  return {task.due, task.submitted, task.id};
}
// After more devices of a model on one node than there were on any.
void recount_full_nodes(PoolState& state, ModelId model);
void refresh_timer(PoolState& state, const TaskState& task);
// A plan that waits for a task to end by itself is given up at its time.
void refresh_plan_timer(PoolState& state, const Plan& plan);
void set_timer(PoolState& state, TimerKind kind, std::uint32_t id, Time at);
void refresh_look(PoolState& state, Look look);
// Of training that loads, and of the moment from which the next may start (D11).
void refresh_start_timers(PoolState& state);
[[nodiscard]] Time next_start(const PoolState& state);
// The end of the slot of the day curve that is open.
void refresh_tide_timer(PoolState& state);
// When a drill has something to do next.
void refresh_drill_timer(PoolState& state);
// A plan is there, or was given up.
void note_plan(PoolState& state, const Plan& plan);
void forget_plan(PoolState& state, const Plan& plan);
// Capacity may have become free: all that wait are looked at again.
void mark_waiting(PoolState& state);
[[nodiscard]] ShapeId intern_shape(PoolState& state, const Shape& shape);
// What a victim of several plans leaves can be given once: it counts for the first.
[[nodiscard]] bool counts_for(const PoolState& state, const Plan& plan, const Victim& victim);
// What nobody else may take of a device for a plan that claims `slot` there: beyond what its own
// victims still have.
[[nodiscard]] Slot held_of(const PoolState& state, const Plan& plan, const Slot& slot);
// A task that runs on devices which a plan keeps for another one, until that one needs them.
[[nodiscard]] bool is_borrower(const PoolState& state, TaskId task);
// Recomputes what a plan holds on its devices beyond its victims' own use there.
void refresh_claims(PoolState& state, const Plan& plan, std::int32_t sign);

}  // namespace neap
