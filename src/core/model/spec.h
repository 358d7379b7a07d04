// What people ask for, as the core understands it: the pool's configuration, nodes, tasks and
// services. Files and API bodies become these through src/config; nothing here is trusted to be
// consistent until rules/admit.h has checked it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/adoption.h"
#include "core/model/tide.h"
#include "core/model/units.h"

namespace neap {

// The kind of work a tier carries; it decides which devices it may use and who may preempt it
// (SPEC D1: online inference > interactive training > batch training).
enum class Purpose : std::uint8_t { inference, interactive, batch };

// What a tier may ask for at most, as a token bucket of devices: the room that promises of a start
// keep free for those who come later and go first (docs/decisions/0016).
struct Envelope {
  std::int32_t burst = 0;  // devices at once, and so of one task; 0: nothing is kept for it
  std::int32_t per_hour = 0;
};

struct TierSpec {
  std::string name;
  std::int32_t weight = 0;
  Purpose purpose = Purpose::batch;
  Micros wait = hours(4);  // W: a task is to have started by then; its place in the queue follows
  Envelope envelope;
};

struct PreemptSpec {
  bool enabled = true;
  bool only_at_checkpoint = true;
  bool break_glass = false;  // killing for capacity; its lost work <= one interval
  Micros checkpoint_interval = minutes(10);
  Micros grace = seconds(60);                   // after a yield's time, before SIGTERM
  Micros term_grace = seconds(30);              // after SIGTERM, before SIGKILL
  Micros guard_reclaim = seconds(30);           // reclaim_within when short of the guard floor
  std::int64_t fixed_cost = 3'600'000'000'000;  // milli-GPU·µs per preemption: one device-hour
  Micros protect_min = minutes(30);             // P_min
  std::int32_t budget_per_day = 4;              // preemptions of one job
  Micros compensation = minutes(30);            // of the wait, for each preemption
  Micros wait_min = minutes(10);                // of the wait, after all compensation
  std::int32_t rounds = 2;                      // A-evicts-B rounds within one checkpoint interval
  std::int32_t missed_checkpoints = 3;          // then admission is revoked (D12)
  Micros chain_protect = hours(24);             // a pipeline that has begun is one group (D9)
};

// What a replica was added for: its service is to have so many, more is asked for than those there
// serve, or a new version takes the place of an old one.
enum class ReplicaCause : std::uint8_t { least, demand, roll };

// Replica scaling (SPEC D5, S13). Ppm of the capacity of the ready replicas in use.
// thresholds: one more above a use, one less below another. tidal: as many as the demand needs,
// and not fewer than the same hour of other days needed.
enum class ScaleMode : std::uint8_t { thresholds, tidal };
// Days that the plan for an hour is made from: the last seven; the newest seven of the same kind,
// Monday to Friday or the weekend; the same day of the last four weeks.
enum class PlanDays : std::uint8_t { recent, kind, weekday };
struct ScaleSpec {
  ScaleMode mode = ScaleMode::thresholds;
  Ppm up_above{700'000};
  Micros up_for = minutes(3);
  Ppm down_below{200'000};
  Micros down_for = minutes(5);
  Micros stale_after = seconds(30);  // a longer gap between samples is "unknown"
  Ppm headroom{50'000};              // tidal: above the demand of now
  Micros dwell = minutes(30);        // tidal: so long fewer must do before one goes
  Micros trend{0};                   // tidal: the rise of so long is expected once more
  Ppm plan{1'000'000};               // tidal: of what the hour needed on other days
  PlanDays plan_days = PlanDays::recent;
  // tidal: the dwell is the break-even time of a switch as it was measured, not `dwell`.
  bool dwell_measured = false;
  // What a switch is taken for until it was measured: a replica leaves, another one loads.
  Micros switch_leave = seconds(30), switch_load = minutes(2);
  // Device time of switches within a day, of the devices that the service may have; 0: no limit.
  Ppm switch_budget{0};
  // Of those the gateway tells: requests that wait for a replica, for each that is ready, and the
  // p95 of the time to the first byte; without a bound of its own the service's objective.
  std::int32_t queue_above = 0;
  std::optional<Micros> first_byte_above;
};

// Room kept for a task that others pass (docs/decisions/0011).
struct ReserveSpec {
  Micros after = minutes(10);  // it has waited so long
  std::int32_t most = 4;       // tasks at once; 0: room is kept for nobody
};

// Tasks moved at low tide, so that devices and nodes become free as a whole (C5, D8).
struct DefragmentSpec {
  bool enabled = true;
  Micros every = minutes(5);   // between two looks
  Micros horizon = hours(4);   // over which the demand is expected, and no longer waits are saved
  Ppm quiet_below{100'000};    // arrivals an hour, as a part of the devices
  std::int32_t cooldown = 10;  // a task runs for so many restores between two moves
};

// Nobody starves, and deadlines that were accepted are kept (D6).
struct FairnessSpec {
  std::int32_t lane = 0;              // C_f: devices kept for forced starts, whole nodes; 0: none
  Micros lane_within{0};              // T_r; 0: a checkpoint interval and the grace
  Micros longest_bound = hours(168);  // a promise beyond this is none
  std::string deadline_tier;          // a task near its deadline goes there; empty: nowhere
  Ppm promoted_max{300'000};          // of a team's demand
};

// Training is started a few at a time, so that not all load their data at once (D11). One loads
// from its placement until its first step or checkpoint, or for `loading` at most.
struct StartsSpec {
  std::int32_t at_once = 0;     // that load; 0: no limit
  Micros apart{0};              // from one start to the next
  Micros loading = minutes(3);  // then it counts as loaded, whatever it said
};

struct PrefilterSpec {  // SPEC A2
  Ppm out_above{700'000};
  Ppm back_below{600'000};
  Micros back_after = minutes(5);
};

// Who pays, and what is theirs (D6): devices that a team gets when it asks, and may have at most.
struct TeamSpec {
  std::string name;
  std::string parent;                 // empty: the pool
  std::int32_t guarantee = 0;         // devices, with those of its children
  std::optional<std::int32_t> limit;  // likewise; none: whatever is free
  std::int32_t weight = 1;            // of its share beside its siblings'
  bool operator==(const TeamSpec&) const = default;
};

// Tasks that run with a range of devices (Request::least).
struct ResizeSpec {
  bool enabled = true;
  Micros dwell = minutes(30);  // it runs so long with a number of devices before it gets more
};

struct PoolSpec {
  std::string name = "default";
  std::int32_t total_gpus = 0;  // 0 = whatever is found
  std::int32_t inference_guard_min = 0;
  std::int32_t elastic_buffer = 0;
  PreemptSpec preempt;
  ScaleSpec scale;
  PrefilterSpec prefilter;
  ReserveSpec reserve;
  DefragmentSpec defragment;
  TideSpec tide;
  FairnessSpec fairness;
  std::vector<TierSpec> tiers;  // sorted by weight descending, then name; TierId is the index
  std::string baseline;         // runtime baseline (A5); empty accepts any
  MiB share_min_memory{0};      // A7: smaller devices are not shared
  MiB device_reserve{0};        // kept free on each device beside the quotas (C1)
  std::int32_t max_restarts = 3;
  std::vector<TeamSpec> teams;  // sorted by name; empty: teams play no part
  ResizeSpec resize;
  StartsSpec starts;
  AdoptionSpec adoption;
  Preset preset = Preset::none;
  Isolation isolation = Isolation::unsaid;
  std::vector<DerivedValue> derived;  // what the preset gave
};

// Parts of the machine room, from small to large (D7). A pair is two devices or more with a fast
// link between them; a rack is within one fault domain.
enum class Cell : std::uint8_t { any, device, pair, node, rack, domain };

struct DeviceSpec {
  std::string uuid;
  std::string model;  // such as A100-80G
  MiB memory{0};
  bool dedicated = false;  // outside the shared pool: for tasks that fail A4
  std::int32_t pair = -1;  // devices of a node with one number are a pair; -1: in none
};

struct NodeSpec {
  std::string name;
  std::string fault_domain;
  std::vector<DeviceSpec> devices;
  std::string rack;            // empty: the node is a rack of its own
  std::int64_t cpu_milli = 0;  // of the host, for tasks; 0: not known, and never short
  MiB memory{0};               // likewise
};

// Where a task may be, beside what it needs (D7, C2).
struct Nearness {
  Cell within = Cell::any;           // all its devices in one such cell
  std::vector<std::string> exclude;  // nodes it is never on, sorted
  std::string group;                 // what the next two speak of; of a replica, its service
  Cell apart = Cell::any;            // no two of the group in one such cell; any: wherever
  std::int32_t per_domain = 0;       // at most so many of the group in a fault domain; 0: any
  std::string weights;  // of the base model: devices that hold them already are preferred
  bool operator==(const Nearness&) const = default;
};

// What one task asks of devices, and of the nodes that carry them.
struct Request {
  std::int32_t count = 1;           // devices; more than a node holds makes it span nodes
  std::int32_t least = 0;           // it runs with fewer, down to so many; 0: with all or not
  MilliGpu share = whole_device;    // of each device, 1..1000
  MiB memory{0};                    // of each device; 0 with a whole share = all of it
  std::vector<std::string> models;  // allowed device models, sorted; empty = any
  std::string trust_domain;         // A6: devices are shared only inside one
  // Of hosts, for the whole task; each node gives the part of its devices, rounded up.
  std::int64_t cpu_milli = 0;
  MiB host_memory{0};
  Nearness near;
  bool operator==(const Request&) const = default;
};

// Ways of agreeing on safe points, several at once (DESIGN, the task contract).
struct ContractSpec {
  bool sdk = false;
  bool signals = false;
  bool watch = false;
  bool on_demand = false;         // can checkpoint when asked, not only at its interval
  Micros interval{0};             // declared checkpoint interval; 0 = none declared
  Micros save = seconds(10);      // k
  Micros stall = seconds(10);     // training stops this long at a boundary
  Micros drain = seconds(5);      // s
  Micros release = seconds(5);    // τ: from yield to freed memory
  Micros restore = seconds(180);  // R
  // Recovery time objective: from placement to work again; 0 = none declared (D12).
  Micros recovery{0};

  [[nodiscard]] bool any() const { return sdk || signals || watch; }
};

// A declared non-preemptible part of the day (D3), UTC, [from, to) as offsets into the day;
// to < from wraps over midnight.
struct DayWindow {
  Micros from{0};
  Micros to{0};
};

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string user;
};

// Directories through which the stages of a pipeline hand on what they made, below that of all
// artefacts. Set by the pool.
struct StageInput {
  std::string stage;
  std::string directory;
};
struct Artifacts {
  std::string own;  // empty: it makes none
  std::vector<StageInput> inputs;
};

// Device memory by what it is for, where that is known (A3).
struct MemorySplit {
  MiB weights{0}, kv_cache{0}, activations{0}, framework{0};
  [[nodiscard]] MiB sum() const { return weights + kv_cache + activations + framework; }
  bool operator==(const MemorySplit&) const = default;
};

// Fields that the profile of a task's type gave, because its file left them open: a set of bits.
enum class Learned : std::uint8_t { work, save, stall, restore, memory, count, models };

struct TaskSpec {
  std::string name;
  std::string team;
  std::string tier;
  Request request;
  ContractSpec contract;
  bool interruptible = true;
  bool predictable = true;            // memory and compute are declared or profiled
  Micros delay_tolerance = hours(1);  // A4: how long it may stand still when preempted
  std::optional<Micros> work;         // device-holding time it needs in all, if known
  std::optional<Time> deadline;
  std::vector<DayWindow> windows;
  std::string baseline;
  Owner owner;
  std::string launch;  // for the backend alone: JSON with command, environment, directories
  Artifacts artifacts;
  std::string profile;  // the type it is of
  MemorySplit split;    // of all its devices together
  std::uint8_t learned = 0;
};

struct ServiceSpec {
  std::string name;
  std::string team;
  std::string tier;
  Request request;  // of one replica
  std::int32_t min_replicas = 1;
  std::int32_t max_replicas = 1;
  std::int32_t concurrency = 1;  // requests one replica serves at once
  std::optional<Micros> slo_first_byte;
  std::optional<ScaleSpec> scale;  // the pool's when absent
  Micros start_timeout = minutes(10);
  Micros drain_timeout = seconds(60);
  std::string baseline;
  Owner owner;
  std::string launch;
  Artifacts artifacts;
  std::string profile;
  MemorySplit split;  // of all devices of one replica
  std::uint8_t learned = 0;
};

}  // namespace neap
