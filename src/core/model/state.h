// The whole state of a pool. apply() (apply.h) alone changes it; rules read it. Everything that
// a visit_fields below names is the state proper: hashed, kept in snapshots, rebuilt by replay.
// `index` is derived from it and is the same when rebuilt.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model/demand.h"
#include "core/model/drill.h"
#include "core/model/events.h"
#include "core/model/fields.h"
#include "core/model/profile.h"
#include "core/model/result.h"
#include "core/model/switching.h"
#include "core/model/units.h"

namespace neap {

struct PoolIndex;  // core/model/pool_index.h

// ---- devices and nodes -----------------------------------------------------------------------

// What a device is for (SPEC D4). Training never runs on a guard device; on a buffer device only
// what can be released in time, and without protection. Assigned by rules/guard.h.
// The lane is kept for forced starts; meanwhile it is lent to training that leaves in time.
enum class Role : std::uint8_t { core, buffer, guard, dedicated, lane };

struct Tenant {
  TaskId task;
  MilliGpu share{0};
  MiB memory{0};
};

struct DeviceState {
  NodeId node;
  std::int32_t index = 0;  // on its node
  std::string uuid;
  ModelId model;
  MiB memory{0};
  DeviceHealth health = DeviceHealth::healthy;
  std::string health_detail;
  bool excluded = false;  // by the prefilter (A2)
  MiB foreign{0};
  Time foreign_low_since = Time::never();
  Role role = Role::core;
  std::int32_t pair = -1;  // on its node

  // Derived from allocations and plans.
  std::vector<Tenant> tenants;  // sorted by task
  MilliGpu used_share{0};
  MiB used_memory{0};
  // Claimed by plans beyond what their own victims still hold here: free now, but spoken for;
  // and all that is claimed here.
  MilliGpu held_share{0}, claimed_share{0};
  MiB held_memory{0}, claimed_memory{0};
};

struct NodeState {
  std::string name;
  DomainId domain;
  RackId rack;
  std::int64_t cpu_milli = 0;  // of the host; 0: not known, and never short
  MiB memory{0};               // likewise
  bool up = true;
  bool reachable = true;
  DeviceId first;  // its devices are first .. first + count - 1
  std::int32_t count = 0;

  // Derived from allocations and plans, as of devices.
  std::int64_t used_cpu = 0, held_cpu = 0, claimed_cpu = 0;
  MiB used_memory{0}, held_memory{0}, claimed_memory{0};
};

// Devices of one model and one size of memory; a model sold in two sizes is two of these.
struct ModelState {
  std::string name;
  MiB memory{0};
  std::int32_t per_node = 0;  // the most on one node
};

// ---- tasks -------------------------------------------------------------------------------------

enum class Phase : std::uint8_t {
  waiting,
  starting,
  running,
  yielding,
  stopping,
  finished,
  failed,
  cancelled,
  refused
};
[[nodiscard]] constexpr bool has_ended(Phase p) { return p >= Phase::finished; }
[[nodiscard]] constexpr bool holds_devices(Phase p) {
  return p == Phase::starting || p == Phase::running || p == Phase::yielding ||
         p == Phase::stopping;
}
[[nodiscard]] std::string_view name_of(Phase phase);
[[nodiscard]] std::string_view name_of(WaitCode code);
[[nodiscard]] std::string_view name_of(ReleaseMode mode);
[[nodiscard]] std::string_view name_of(StopReason reason);
[[nodiscard]] std::string_view name_of(Role role);
[[nodiscard]] std::string_view name_of(Purpose purpose);
[[nodiscard]] std::string_view name_of(StagePhase phase);
[[nodiscard]] std::string_view name_of(BoundCode code);

// A request with all that decides where and when it may run, interned: tasks of one shape wait
// for the same thing, so one failed search speaks for them all.
struct Shape {
  Request request;
  TierId tier;
  Purpose purpose{};
  bool dedicated = false;
  bool releasable = false;  // may be placed on lendable (buffer) devices
  std::string team;         // empty where the pool has no teams
  LaneUse lane = LaneUse::none;
  bool operator==(const Shape&) const = default;
};

struct TaskState {
  TaskId id;
  TaskSpec spec;
  TierId tier;
  Purpose purpose{};
  ShapeId shape;
  ServiceId service;          // of a replica
  std::uint32_t version = 0;  // of its service
  PipelineId pipeline;        // of which it is a stage
  std::int32_t stage = 0;
  bool awaits_stages = false;  // that come before it
  bool dedicated = false, releasable = false;
  LaneUse lane = LaneUse::none;
  DeadlineVerdict deadline = DeadlineVerdict::none;
  Phase phase = Phase::waiting;
  Time submitted, phase_since;
  Time not_before;  // waits out a backoff until then

  AllocationId allocation;  // the current one, or the last
  std::vector<Slot> slots;
  Time placed_at, started_at, ready_at;
  bool ready = false;
  std::uint32_t report_epoch = 0;
  std::uint64_t report_sequence = 0;
  Time first_started;  // 0 until then: mean wait is first_started - submitted
  Micros waited{0};    // in all, every time it waited

  // Progress. `captured` is the instant of this allocation whose state is durable (its start
  // until the first checkpoint); `done` the device-holding time that earlier ones made durable.
  std::int64_t last_step = 0, durable_step = 0;
  std::string checkpoint_path;
  Time captured;
  Micros done{0};
  bool on_demand_seen = false;
  Micros seen_save{0}, seen_stall{0}, seen_restore{0};  // decaying high-water marks; 0 = unseen
  Micros lost{0};                                       // work lost in all, as device-holding time
  std::int32_t missed = 0;                              // checkpoints overdue in a row
  Time checkpoint_due = Time::never();

  // The virtual deadline (POLICIES 4): of one tier, who has the earliest goes first.
  Time due;
  // The promise of a start, of this wait.
  BoundCode bound = BoundCode::none;
  Time forced_at = Time::never();  // from then on it goes before all others
  Time start_by = Time::never();
  std::int64_t ahead = 0;  // tasks with a promise that may have had to start before it
  bool forced = false;
  Time lane_until;  // it was started in the lane, and stays there until then; 0: it was not
  std::int32_t preemptions = 0;
  std::int32_t preemptions_today = 0;
  std::int64_t preemption_day = 0;
  std::int32_t restarts = 0;  // after failures, in a row
  std::int32_t resizes = 0;   // times it went on with another number of devices
  ReleaseMode yield_mode{};
  Time yield_by;  // p95 of its release; the grace follows
  Time kill_at = Time::never();
  StopReason stop_reason = StopReason::none;
  bool asked_to_yield = false;  // in this allocation, even if that was withdrawn
  std::int32_t reserved = 0;    // times that room was kept for it since it began to wait

  std::int32_t exit_code = 0, exit_signal = 0;
  std::string detail;    // why it was refused or failed
  bool loading = false;  // began, and has not reported work yet (training)
  MiB seen_memory{0};    // highest use of one device in this allocation; 0 = unseen
  Time leaving_since;    // of a replica: asked to leave for a lower demand; 0: it was not
  WarmUp warm_up{};      // of a replica
};

// Replicas of another version than the service's are replaced, one at a time: a new one beside the
// old ones first, and when it is healthy one of those leaves.
enum class RollPhase : std::uint8_t { forward, back };
struct Roll {
  ServiceSpec before;
  std::uint32_t from = 0;  // its version
  Time begun;
  std::int32_t wanted = 0;  // replicas, one more for a while
  RollPhase phase{};
  std::string fault;  // why the new version is given up
};

struct ServiceState {
  ServiceId id;
  ServiceSpec spec;
  TierId tier;
  bool removed = false;
  std::vector<TaskId> replicas;  // not ended, sorted
  std::uint32_t next_replica = 0;
  Time last_sample = Time::never();
  Time above_since = Time::never(), below_since = Time::never();
  std::optional<std::int64_t> in_use;
  std::int32_t failures = 0;              // starts in a row that ended unasked
  DayCurve curve;                         // where replicas follow the tide
  std::vector<LoadSample> recent;         // within the trend, the oldest first
  std::optional<std::int64_t> slot_peak;  // demand in the slot that is open, in devices
  std::int32_t needed_while_low = 0;      // the most replicas needed since below_since
  // Signals beside the use. Once one was told, not knowing it is not knowing the load.
  std::optional<std::int64_t> queued;
  std::optional<Micros> first_byte;
  bool queue_told = false, first_byte_told = false;
  Time idle_since = Time::never();  // it serves, and nobody asks
  bool wake = false;                // somebody asked, and nothing served
  std::uint32_t version = 0, newest_version = 0;
  std::optional<Roll> roll;
  std::string rolled_back;  // why the last new version was given up
  bool was_short = false;   // at the last sample
  SwitchBook switches;
  // At the first sample of an hour: replicas that the hour is unlikely to need more of.
  std::optional<std::int32_t> hour_needs;
};

// preemption: others were asked to leave. reservation: others leave when they end, or are moved.
// move: the task itself runs, and goes on here once it has yielded where it is. resize: the same,
// with fewer devices or more; its own, which it takes along, count as left by itself.
enum class PlanKind : std::uint8_t { preemption, reservation, move, resize };

// Devices claimed for a task, and who is to leave them.
struct Plan {
  TaskId task;
  std::vector<Slot> slots;
  std::vector<Victim> victims;  // those that have not released yet
  Time made, needed_by;
  PlanKind kind{};
  TaskId for_task;              // for whom room is made by this move; none: for whoever comes
  std::vector<TaskId> lent_to;  // of the victims those who came later, sorted
};

// What came of late, by whole devices on one node (0: everything), in thousandths of a
// task. Halved with every hour, so that it is about twice what comes in one.
inline constexpr std::int64_t one_task = 1000;
struct Arrivals {
  std::int32_t devices = 0;
  std::int64_t tasks = 0;
};

struct Pause {
  bool active = false;
  std::string by, why;
  Time since;
};

// Tasks by id in pages: ids only grow, lookups are two loads, and a page of forgotten tasks
// is given back.
class TaskTable {
 public:
  static constexpr std::uint32_t page_size = 256;

  TaskState& add();  // takes the next id
  [[nodiscard]] TaskState* find(TaskId id);
  [[nodiscard]] const TaskState* find(TaskId id) const;
  [[nodiscard]] TaskState& at(TaskId id);  // checked
  [[nodiscard]] const TaskState& at(TaskId id) const;
  void forget(TaskId id);
  [[nodiscard]] TaskId next_id() const { return TaskId(next_); }
  [[nodiscard]] std::size_t size() const { return live_; }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& page : pages_) {
      if (!page) continue;
      for (const auto& slot : page->tasks) {
        if (slot) visit(*slot);
      }
    }
  }
  // For snapshots.
  void restore(std::uint32_t next, std::vector<TaskState> tasks);

  TaskTable() = default;
  TaskTable(const TaskTable& other);
  TaskTable& operator=(const TaskTable& other);
  TaskTable(TaskTable&&) noexcept = default;
  TaskTable& operator=(TaskTable&&) noexcept = default;
  ~TaskTable() = default;

 private:
  struct Page {
    std::array<std::unique_ptr<TaskState>, page_size> tasks;
    std::uint32_t used = 0;
  };
  std::vector<std::unique_ptr<Page>> pages_;
  std::uint32_t next_ = 0;
  std::size_t live_ = 0;
};

struct PoolState {
  PoolState();
  ~PoolState();
  PoolState(const PoolState& other);  // rebuilds the index
  PoolState& operator=(const PoolState& other);
  PoolState(PoolState&&) noexcept;
  PoolState& operator=(PoolState&&) noexcept;

  PoolSpec spec;
  bool configured = false;
  Time now;                    // of the last record applied
  std::uint64_t sequence = 0;  // of the last record applied
  std::vector<NodeState> nodes;
  std::vector<DeviceState> devices;
  std::vector<std::string> domains;
  std::vector<std::string> racks;
  std::vector<ModelState> models;
  TaskTable tasks;
  std::vector<ServiceState> services;
  std::vector<Shape> shapes;
  std::vector<WaitCode> wait_codes;    // by shape
  std::vector<Time> preempt_retry_at;  // by shape
  std::map<TaskId, Plan> plans;
  Pause pause;
  std::map<std::string, std::string> conditions;  // active ones, with their detail
  std::uint64_t next_allocation = 0;
  DemandBook demand;
  PlacementBasis basis;
  TideBook tide;
  std::vector<PipelineState> pipelines;  // sorted; of those that ended the newest
  std::uint32_t next_pipeline = 0;
  Time guard_retry_at = Time::never();  // training on guard devices could not be asked to yield
  Time room_look_at, consolidation_look_at, growth_look_at;  // nothing is looked at before
  Time lane_look_at = Time::never(), deadlines_look_at = Time::never();
  std::vector<Micros> expected_waits;  // by tier; missing: not known, and 0
  std::vector<Time> newest_placed;     // by tier: the latest submission of those placed
  std::vector<Arrivals> arrivals;      // sorted by devices
  std::int64_t arrivals_hour = 0;      // of the epoch, up to which it is kept
  DrillState drill;
  DrillResult last_drill;
  Time last_start = Time::never();  // of training; never: none yet
  AdoptionBook adoption;
  ProfileBook profiles;
  LentUse lent;

  std::unique_ptr<PoolIndex> index;

  [[nodiscard]] const DeviceState& device(DeviceId id) const { return devices[id.value]; }
  [[nodiscard]] const NodeState& node(NodeId id) const { return nodes[id.value]; }
  [[nodiscard]] const ServiceState& service(ServiceId id) const { return services[id.value]; }
  [[nodiscard]] const TierSpec& tier(TierId id) const { return spec.tiers[id.value]; }
  [[nodiscard]] const Shape& shape(ShapeId id) const { return shapes[id.value]; }
};

// A device that takes new tenants: healthy, not excluded, on a node that is up and reachable.
[[nodiscard]] bool is_usable(const PoolState& state, const DeviceState& device);
// Whether a table of placement should be learned from the demand as it is now.
[[nodiscard]] bool learning_is_due(const PoolState& state);
// Free for anyone: capacity - used - held. What a plan claimed is not free for others; what its
// victims release beyond the claim is, once they are gone.
[[nodiscard]] MilliGpu free_share(const DeviceState& device);
[[nodiscard]] MiB free_memory(const PoolState& state, const DeviceState& device);

[[nodiscard]] std::optional<NodeId> find_node(const PoolState& state, std::string_view name);
// The newest task of this name, if it has not ended; and the live service of this name.
[[nodiscard]] std::optional<TaskId> find_live_task(const PoolState& state, std::string_view name);
[[nodiscard]] std::optional<ServiceId> find_live_service(const PoolState& state,
                                                         std::string_view name);
// The newest pipeline of this name, ended or not; and by id. nullptr: there is none.
[[nodiscard]] const PipelineState* find_pipeline(const PoolState& state, std::string_view name);
[[nodiscard]] const PipelineState* find_pipeline(const PoolState& state, PipelineId id);

// Remaining work W of a task that runs or waits; nothing when it is not known, or when the task
// has run for longer than was declared: then the declaration says nothing any more.
[[nodiscard]] std::optional<Micros> remaining_work(const TaskState& task, Time now);
// Of time that it has run, the part that counts as work: with fewer devices than it asks for it
// gets on as much more slowly, and its work is that of all of them.
[[nodiscard]] Micros progress_of(const TaskState& task, Micros time);
// What it takes to restore: as seen last, else as its contract says.
[[nodiscard]] Micros restore_of(const TaskState& task);
// Of a task that leaves: when it is gone at the latest.
[[nodiscard]] Time leaves_by(const TaskState& task);
[[nodiscard]] bool holds_one_of(const TaskState& task, const std::vector<Slot>& slots);
// milli-GPU held by the current allocation.
[[nodiscard]] std::int64_t held_milli(const TaskState& task);

// 64-bit hash of the state proper; equal states hash equal on every machine.
[[nodiscard]] std::uint64_t hash_of(const PoolState& state);
[[nodiscard]] std::string encode_snapshot(const PoolState& state);
[[nodiscard]] Result<PoolState> decode_snapshot(std::string_view bytes);

NEAP_FIELDS_BEGIN(DeviceState)
NEAP_ROW(node, index, uuid, model, memory, health, health_detail, excluded)
NEAP_ROW(foreign, foreign_low_since, role, pair)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(NodeState)
NEAP_ROW(name, domain, rack, cpu_milli, memory, up, reachable)
NEAP_ROW(first, count)
NEAP_FIELDS_END
NEAP_FIELDS(ModelState, name, memory, per_node)
NEAP_FIELDS(Shape, request, tier, purpose, dedicated, releasable, team, lane)
NEAP_FIELDS_BEGIN(TaskState)
NEAP_ROW(id, spec, tier, purpose, shape, service, dedicated, releasable)
NEAP_ROW(phase, submitted, phase_since, not_before, allocation, slots, placed_at, started_at)
NEAP_ROW(ready_at, ready, report_epoch, report_sequence, first_started, waited, last_step)
NEAP_ROW(durable_step, checkpoint_path, captured, done, on_demand_seen, seen_save, seen_stall)
NEAP_ROW(seen_restore, lost, missed, checkpoint_due, preemptions, preemptions_today)
NEAP_ROW(preemption_day, restarts, yield_mode, yield_by, kill_at, stop_reason, exit_code)
NEAP_ROW(asked_to_yield, reserved, exit_signal, detail, due, loading, seen_memory)
NEAP_ROW(version, pipeline, stage, awaits_stages, resizes)
NEAP_ROW(lane, deadline, bound, forced_at, start_by, ahead, forced, lane_until)
NEAP_ROW(leaving_since, warm_up)
NEAP_FIELDS_END
NEAP_FIELDS(Roll, before, from, begun, wanted, phase, fault)
NEAP_FIELDS_BEGIN(ServiceState)
NEAP_ROW(id, spec, tier, removed, replicas, next_replica, last_sample, above_since)
NEAP_ROW(below_since, in_use, failures, curve, slot_peak, needed_while_low, was_short)
NEAP_ROW(queued, first_byte, queue_told, first_byte_told, idle_since, wake)
NEAP_ROW(version, newest_version, roll, rolled_back)
NEAP_ROW(recent, switches, hour_needs)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(StageState)
NEAP_ROW(name, after, when, task, deploys, service, phase, since)
NEAP_ROW(detail, metrics, fault)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(PipelineState)
NEAP_ROW(id, name, team, owner, submitted, begun, ended, group)
NEAP_ROW(cancelled_by, stages)
NEAP_FIELDS_END
NEAP_FIELDS(Plan, task, slots, victims, made, needed_by, kind, for_task, lent_to)
NEAP_FIELDS(Arrivals, devices, tasks)
NEAP_FIELDS(DemandBook, kinds, seen)
NEAP_FIELDS(PlacementBasis, version, seen, kinds, table)
NEAP_FIELDS(DayCurve, hour, open, closed)
NEAP_FIELDS(LoadSample, at, in_use)
NEAP_FIELDS(TideBook, begun, slot_begin, outage, elastic)
NEAP_FIELDS(Pause, active, by, why, since)
NEAP_FIELDS_BEGIN(AdoptionFigures)
NEAP_ROW(starts, failures, faults, breaches, memory_breaches, yields, kept, measured)
NEAP_ROW(shortage, lost)
NEAP_FIELDS_END
NEAP_FIELDS(AdoptionChange, at, from, to, forced, by, why, missing)
NEAP_FIELDS(AdoptionBook, stage, since, seen, changes)
NEAP_FIELDS(Observed, count, last)
NEAP_FIELDS_BEGIN(TaskProfile)
NEAP_ROW(name, purpose, used, split, declared, memory, work, save)
NEAP_ROW(stall, restore)
NEAP_FIELDS_END
NEAP_FIELDS(ProfileBook, known)
NEAP_FIELDS(SwitchCost, version, model, leave, load, warm_up)
NEAP_FIELDS(SwitchHour, hour, given)
NEAP_FIELDS(SwitchBook, costs, hours, given)
NEAP_FIELDS(LentUse, held, useful)

}  // namespace neap
