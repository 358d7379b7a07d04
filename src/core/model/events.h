// The two kinds of record that change the pool's state, and the actions that follow.
//
// An Event is a fact from outside: somebody submitted, a process exited, a node was lost.
// A Decision is what the engine chose. Both are journalled and both go through apply(), so that
// a replay of the journal ends in the same state. An Action is what a backend must carry out; it
// is derived from a decision and is not journalled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/model/demand.h"
#include "core/model/drill.h"
#include "core/model/pipeline.h"
#include "core/model/spec.h"
#include "core/model/units.h"

namespace neap {

// ---- facts ---------------------------------------------------------------------------------

// Where a backend's report comes from. Sequences are gapless within one epoch of one allocation;
// duplicates and reorderings are resolved before apply (sequencer.h).
struct ReportStamp {
  AllocationId source;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
};

struct PoolConfigured {
  PoolSpec spec;
};
struct NodeJoined {
  NodeSpec spec;
};  // a known name: comes back, same devices
struct NodeUnreachable {
  std::string node;
};  // nothing placed there; nothing given up
struct NodeLost {
  std::string node;
};  // confirmed gone: what ran there has ended
enum class DeviceHealth : std::uint8_t { healthy, failed };
struct DeviceHealthChanged {
  std::string node;
  std::int32_t index = 0;
  DeviceHealth health{};
  std::string detail;
};
// Memory held on a device by processes outside the pool (A2).
struct ForeignMemoryChanged {
  std::string node;
  std::int32_t index = 0;
  MiB used{0};
};

struct TaskSubmitted {
  TaskSpec spec;
};
struct TaskCancelRequested {
  std::string name;
  std::string by;
};
struct ServiceSubmitted {
  ServiceSpec spec;
};
struct ServiceRemoveRequested {
  std::string name;
  std::string by;
};
struct ServiceScaled {
  std::string name;
  std::int32_t min_replicas = 0;
  std::int32_t max_replicas = 0;
  std::string by;
};
// One sample of load. Unknown signals are absent, never zero. in_use counts requests in service
// and waiting; capacity is ready replicas x concurrency.
struct ServiceMeasured {
  std::string name;
  std::optional<std::int64_t> in_use;
  std::optional<std::int64_t> queued = std::nullopt;    // of those in use, they wait
  std::optional<std::int64_t> ended = std::nullopt;     // since the sample before, refused too
  std::optional<Micros> first_byte_p95 = std::nullopt;  // of those that ended lately
};
// A new version of a live service: its replicas are replaced one by one (C4).
struct ServiceReplaced {
  ServiceSpec spec;
  std::string by;
};
struct PipelineSubmitted {
  PipelineSpec spec;
};
struct PipelineCancelRequested {
  std::string name;
  std::string by;
};
// What a stage that has finished wrote down about its result, or why that says nothing.
struct MetricsRead {
  PipelineId pipeline;
  std::int32_t stage = 0;
  std::vector<Metric> values;
  std::string fault;
};
struct PauseRequested {
  std::string by;
  std::string why;
};
struct ResumeRequested {
  std::string by;
};
// The next step of adoption, or one back. An advance whose check fails has to be forced, with why.
struct AdoptionChangeRequested {
  AdoptionStage to{};
  std::string by;
  std::string why;
  bool forced = false;
};
struct TimerFired {};  // time has passed; nothing else happened
struct TaskStarted {
  ReportStamp stamp;
};  // its process runs
struct ReplicaHealthy {
  ReportStamp stamp;
};  // it answers its health check
struct ReplicaUnhealthy {
  ReportStamp stamp;
  std::string detail;
};
struct ContractGreeting {
  ReportStamp stamp;
  bool on_demand = false;
  bool boundary = false;
};
// Aggregate of at most 10 s: `count` steps ended at step `last`, in `busy` time.
struct StepsReported {
  ReportStamp stamp;
  std::int64_t last = 0;
  std::int64_t count = 0;
  Micros busy{0};
};
// Requests answered by one replica in at most 10 s (from the gateway, not sequenced).
struct RequestsServed {
  AllocationId allocation;
  std::int64_t responses = 0;
  std::int64_t within_slo = 0;
  Micros busy_within_slo{0};
};
// A durable checkpoint; `captured` is the instant whose state it holds.
struct CheckpointDurable {
  ReportStamp stamp;
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  Time captured;
  Micros save{0};
  Micros stall{0};
};
struct YieldAcknowledged {
  ReportStamp stamp;
  std::int64_t step = 0;
};
struct ContractBroken {
  ReportStamp stamp;
  std::string detail;
};
// The process and all it started are gone: only now is its capacity free.
struct TaskExited {
  ReportStamp stamp;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string detail;
};
struct StartFailed {
  ReportStamp stamp;
  std::string detail;
};

// The highest use of one of its devices so far, as the backend sees it (not sequenced).
struct MemoryObserved {
  AllocationId allocation;
  MiB peak{0};
};

// A table that was learned, beside the loop, from the demand as it was at `seen`.
struct PlacementLearned {
  std::int64_t seen = 0;
  std::vector<DemandCount> kinds;
  std::vector<std::int32_t> table;  // as in PlacementBasis
};

// How long a task of this tier is expected to wait that is submitted now, as forecasts say. Rules
// that need a wait read it.
struct WaitExpected {
  std::string tier;
  Micros wait{0};
};
using Event = std::variant<
    PoolConfigured, NodeJoined, NodeUnreachable, NodeLost, DeviceHealthChanged,
    ForeignMemoryChanged, TaskSubmitted, TaskCancelRequested, ServiceSubmitted,
    ServiceRemoveRequested, ServiceScaled, ServiceMeasured, PauseRequested, ResumeRequested,
    TimerFired, TaskStarted, ReplicaHealthy, ReplicaUnhealthy, ContractGreeting, StepsReported,
    RequestsServed, CheckpointDurable, YieldAcknowledged, ContractBroken, TaskExited, StartFailed,
    PlacementLearned, ServiceReplaced, PipelineSubmitted, PipelineCancelRequested, MetricsRead,
    WaitExpected, DrillStarted, DrillStopRequested, AdoptionChangeRequested, MemoryObserved>;

// ---- decisions -----------------------------------------------------------------------------
// One device's part of a placement.
struct Slot {
  DeviceId device;
  MilliGpu share{0};
  MiB memory{0};
  bool operator==(const Slot&) const = default;
};

enum class ReleaseMode : std::uint8_t { finish, boundary, on_demand, kill };
enum class StopReason : std::uint8_t {
  none,
  cancelled,
  scaled_down,
  preempted,
  guard_restored,
  contract_breach,
  device_failed,
  unhealthy,
  admission_revoked,
  moved,      // to go on elsewhere: room is made for others
  replaced,   // a replica of another version of its service is there
  resized,    // to go on with fewer devices, or with more
  adoption,   // the stage of adoption no longer has it there
  drill_over  // a replica that is there for a drill alone
};

// Why a task waits. The code is stored; the numbers are read from the state when asked.
enum class WaitCode : std::uint8_t {
  none,            // does not wait
  not_considered,  // only between submission and the decision that follows it
  no_such_device,  // no usable device of the allowed models
  compute,         // memory would fit, compute does not (S2)
  memory,          // compute would fit, memory does not
  whole_devices,   // too few wholly free devices
  fragmented,      // enough in total, not on one node
  guard,           // would fit, were it not for the inference guard
  buffer,          // would fit on lendable devices, which it may not use
  yield_pending,   // others were asked to yield for it
  paused,          // the pool is paused and only preemption would help
  backoff,         // restarts after a failure, later
  dedicated_full,  // needs the dedicated partition, which is full
  host,            // devices would fit, CPU or memory of their nodes does not
  apart,           // would fit, were it not for members of its group
  excluded,        // would fit on nodes that it excludes
  cell,            // would fit, not within one such cell
  stage,           // a stage of its pipeline comes before it
  team_limit,      // its team, or one above it, would have more than its limit
  starts,          // would fit, but others load still or began a moment ago
  adoption,        // would fit, in a later stage of adoption
};

// Whether a task may have devices of the lane while nobody is forced to start there; forced: the
// shape of a task that is to start there, which has no other devices.
enum class LaneUse : std::uint8_t { none, borrows, forced };

// What became of the deadline of a task at its submission.
enum class DeadlineVerdict : std::uint8_t { none, accepted, work_unknown, too_soon };

// Whether a start is promised to a task that waits, or why not (docs/decisions/0016).
enum class BoundCode : std::uint8_t {
  none,         // not judged yet, or there is no lane
  issued,       // it starts by TaskState::start_by
  not_batch,    // the lane carries batch training alone
  dedicated,    // it uses the dedicated partition alone
  windows,      // it declares times at which it may not be preempted
  too_large,    // it does not fit the lane, were that empty
  constrained,  // where it may be depends on others, or on the node
  infeasible,   // promises that were made would not hold
  requeued,     // it has started before, and promises that were made would not hold
};

struct Victim {
  TaskId task;
  ReleaseMode mode{};
  Time release_by;        // p95 of its release
  std::int64_t cost = 0;  // milli-GPU·µs
  bool operator==(const Victim&) const = default;
};

struct TaskAdmitted {
  TaskId task;
  bool dedicated = false;
  bool releasable = false;
  LaneUse lane = LaneUse::none;
  DeadlineVerdict deadline = DeadlineVerdict::none;
};
struct TaskRefused {
  TaskId task;
  std::string condition;
  std::string detail;
};
struct TaskPlaced {
  TaskId task;
  AllocationId allocation;
  std::vector<Slot> slots;
  TaskId lender = TaskId::none();  // whose room, kept by a reservation, it has until then
  Time leaves_by = Time::never();  // never: when it is asked
};
// Devices are claimed for `task`, and the victims are asked to release them.
struct PreemptionPlanned {
  TaskId task;
  std::vector<Slot> slots;
  std::vector<Victim> victims;
  Time needed_by;
  std::int64_t lower_bound = 0;
};
struct PreemptionDropped {
  TaskId task;
  std::string why;
};
// Ask a task to yield; reason preempted comes with a plan, guard_restored without.
struct YieldAsked {
  TaskId task;
  AllocationId allocation;
  ReleaseMode mode{};
  Time release_by;
  StopReason reason{};
};
struct YieldWithdrawn {
  TaskId task;
  AllocationId allocation;
};
struct CheckpointAsked {
  TaskId task;
  AllocationId allocation;
  std::int32_t missed = 0;
};
// SIGTERM, or for a replica: leave the gateway, serve what was begun, stop.
struct StopAsked {
  TaskId task;
  AllocationId allocation;
  StopReason reason{};
  Time kill_at;
};
struct KillAsked {
  TaskId task;
  AllocationId allocation;
  StopReason reason{};
};
struct BackoffEnded {
  TaskId task;
};
struct ReplicaAdded {
  ServiceId service;
  TaskId task;
  std::string why;
  ReplicaCause cause = ReplicaCause::least;
};
struct ReplicaDropped {
  ServiceId service;
  TaskId task;
  std::string why;
};  // one not yet placed
struct RolesAssigned {
  std::vector<DeviceId> guard;
  std::vector<DeviceId> buffer;
  std::vector<DeviceId> lane{};
};  // sorted
struct DeviceExcluded {
  DeviceId device;
  MiB foreign{0};
};
struct DeviceReadmitted {
  DeviceId device;
};
struct WaitReasonChanged {
  ShapeId shape;
  WaitCode code{};
};
struct ConditionChanged {
  std::string condition;
  bool active = false;
  std::string detail;
};
struct PreemptRetryScheduled {
  ShapeId shape;
  Time at;
};
// Devices are kept for `task`, which others pass: what their tenants leave, nobody else takes. It
// asks nobody to yield.
struct RoomReserved {
  TaskId task;
  std::vector<Slot> slots;
  std::vector<Victim> victims;  // the tenants
  Time expected;                // when they will have left
};
// `task` runs, and is to go on at `slots`, claimed for it: it is asked to yield next. Room is made
// for `for_task`, or for whoever comes. With another number of devices than it has it is resized
// (Request::least): with fewer on some of its own, so that others get the rest, or with more.
struct MovePlanned {
  TaskId task;
  std::vector<Slot> slots;
  TaskId for_task;
  Time expected;
};
// Nothing is looked at again before `at`: who needs room kept, what could be consolidated, who
// could have more devices, who is to start in the lane, or who comes near a deadline.
enum class Look : std::uint8_t { room, consolidation, growth, lane, deadlines };
struct LookScheduled {
  Look look{};
  Time at;
};

// A slot of the day curve has closed with this demand of all services, in devices, or nothing where
// it is not known; and `slots` - 1 after it of which nothing is known. 0 slots: counting begins.
struct DemandCounted {
  std::optional<std::int64_t> demand;
  std::int64_t slots = 0;
};
// It has said nothing and counts as loaded.
struct LoadingEnded {
  TaskId task;
};

// A start by `start_by` is promised to a task that waits, or is not. At `forced_at` it begins to
// go before all others; `ahead` tasks with a promise may have to start before it.
struct StartBoundSet {
  TaskId task;
  BoundCode code{};
  Time forced_at = Time::never();
  Time start_by = Time::never();
  std::int64_t ahead = 0;
};
// It has waited as long as its tier allows: it goes before all others.
struct TaskForced {
  TaskId task;
};
// A task that waits goes on in another tier.
struct TierChanged {
  TaskId task;
  TierId tier;
  std::string why;
};
using Decision =
    std::variant<TaskAdmitted, TaskRefused, TaskPlaced, PreemptionPlanned, PreemptionDropped,
                 YieldAsked, YieldWithdrawn, CheckpointAsked, StopAsked, KillAsked, BackoffEnded,
                 ReplicaAdded, ReplicaDropped, RolesAssigned, DeviceExcluded, DeviceReadmitted,
                 WaitReasonChanged, ConditionChanged, PreemptRetryScheduled, RoomReserved,
                 MovePlanned, LookScheduled, DemandCounted, StageEntered, StageEnded, ServiceRolled,
                 StartBoundSet, TaskForced, TierChanged, DrillPaused, DrillResumed, DrillWithdrawn,
                 DrillEnded, LoadingEnded>;

// ---- actions -------------------------------------------------------------------------------

// Each names an allocation; carrying one out twice must equal carrying it out once.
struct StartTask {
  AllocationId allocation;
  TaskId task;
  ServiceId service;  // none for a training task
  std::string name;
  std::string launch;
  Owner owner;
  ContractSpec contract;
  std::vector<std::string> devices;  // UUIDs
  std::vector<Slot> slots;
  std::string node;
  std::string restore_from;  // newest durable checkpoint, may be empty
  Artifacts artifacts;
};
// After a restart: this ran. A backend that finds nothing of it reports TaskExited.
struct AdoptTask {
  AllocationId allocation;
  std::string node;
};
struct AskYield {
  AllocationId allocation;
  ReleaseMode mode{};
  Time by;
};
struct WithdrawYield {
  AllocationId allocation;
};
struct AskCheckpoint {
  AllocationId allocation;
};
struct StopTask {
  AllocationId allocation;
  Time kill_at;
};
struct KillTask {
  AllocationId allocation;
};

using Action =
    std::variant<StartTask, AdoptTask, AskYield, WithdrawYield, AskCheckpoint, StopTask, KillTask>;

[[nodiscard]] AllocationId allocation_of(const Action& action);
// The stamp of a backend's report; nullptr for facts that are not sequenced.
[[nodiscard]] const ReportStamp* stamp_of(const Event& event);

}  // namespace neap
