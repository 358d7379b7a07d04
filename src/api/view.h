// What the daemon shows to callers, as plain values: text and integers, no core types, so that
// an answer is a copy that stays true after the loop has gone on. Times are µs since the Unix
// epoch, lengths of time µs, memory MiB, compute milli-GPU; `unknown` (-1) is a value not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap::api {

inline constexpr std::int64_t unknown = -1;

struct Condition {
  std::string name;     // stable, such as "guard_unmet"
  std::string message;  // one sentence for people
};

// The header of every listing: whose numbers these are and whether the pool is paused.
struct PoolStatus {
  std::string version;
  std::string device_source;   // "simulated", "nvml", "mixed"
  std::uint64_t sequence = 0;  // of the newest event that the answer includes
  std::int64_t now_us = 0;
  std::int64_t started_us = 0;
  std::string paused_by;  // empty when not paused
  std::int64_t paused_since_us = unknown;
  std::int64_t devices_total = 0;
  std::int64_t devices_usable = 0;
  std::int64_t devices_guard = 0;  // whole devices, as configured
  std::int64_t devices_buffer = 0;
  std::int64_t devices_lent = 0;  // held by training out of what inference may claim back
  std::int64_t tasks_waiting = 0;
  std::int64_t tasks_running = 0;
  std::string stage;                  // of adoption: "physical", "memory", "time"
  std::string preset;                 // of the ratio; empty: none
  std::string isolation;              // what the preset keeps it by; empty: not said
  std::vector<Condition> conditions;  // what is wrong with the pool now, such as guard_unmet
};

// Names a task or service for good: ids are never used again, names may be.
struct Subject {
  std::uint64_t id = 0;
  std::string name;
  std::uint32_t owner_uid = 0;
};

struct Holding {  // one device held by one task
  std::string device;
  std::int64_t compute_milli = 0;
  std::int64_t memory_mib = 0;
};

struct TaskRow {
  Subject subject;
  std::string kind;  // "training", "interactive", "replica"
  std::string user;  // the owner's login name, or the number
  std::string team;
  std::string tier;
  std::string service;  // of a replica
  std::string state;    // glossary: waiting, starting, running, yielding, stopping, finished,
                        // failed, cancelled, refused, lost
  std::string reason;   // why it is where it is, one sentence
  std::int64_t place = unknown;    // in the queue, from 1
  std::int64_t gpus = 0;           // devices asked for
  std::int64_t least_gpus = 0;     // it runs with so many too; 0: with all of them or not
  std::int64_t compute_milli = 0;  // per device
  std::int64_t memory_mib = 0;     // per device
  std::string node;
  std::vector<std::string> devices;
  std::int64_t start_by_us = unknown;  // of a task that waits: the latest start that is promised
  std::int64_t submitted_us = unknown;
  std::int64_t started_us = unknown;  // of the present or last run
  std::int64_t finished_us = unknown;
  std::int64_t last_checkpoint_us = unknown;
  std::int64_t preemptions = 0;
  std::int64_t resizes = 0;  // times it went on with another number of devices
  std::int64_t lost_work_us = 0;
  std::int64_t step = unknown;
  std::int64_t exit_code = unknown;  // 128 + signal when a signal ended it
};

struct TrailEntry {
  std::uint64_t sequence = 0;
  std::int64_t time_us = 0;
  std::string state;
  std::string place;  // node and devices, empty when nowhere
  std::string reason;
};

struct Attribute {  // one line of a description: "checkpoint.interval", "10min"
  std::string name;
  std::string value;
};

// Limits of the host: what the task file asks for, and of a task that runs, what holds.
struct HostLimitsView {
  std::vector<Attribute> asked;         // "cpu_quota", as in the file
  std::vector<Attribute> enforced;      // "cpu quota"; what the pool gives too
  std::vector<Attribute> not_enforced;  // with the reason
};

struct TaskDetail {
  PoolStatus pool;
  TaskRow row;
  HostLimitsView host;
  std::vector<Attribute> declared;  // the task file as understood, defaults included
  std::vector<Attribute> measured;  // the checkpoint contract as it is kept
  std::vector<TrailEntry> trail;    // oldest first, bounded
};

struct AdmissionCheck {
  std::string name;   // "interruptible", "predictable", "delay_bounded", "baseline", ...
  std::string state;  // "met", "failed", "unknown"
  std::string message;
};

struct WhyReport {
  PoolStatus pool;
  TaskRow row;
  std::string code;  // stable reason code, such as "no_capacity"
  std::string reason;
  std::int64_t place = unknown;
  std::int64_t queue_length = 0;
  std::vector<std::string> unblocks;  // each change that would let it start, on its own
  std::vector<AdmissionCheck> admission;
  std::int64_t estimate_us = unknown;  // when room that is kept for it is there
  // From the forecast of starts; its age is unknown where there is none.
  std::int64_t start_p50_us = unknown;  // unknown: not within the horizon
  std::int64_t start_p90_us = unknown;
  std::int64_t forecast_age_us = unknown;
  std::int64_t forecast_draws = 0;
  std::string promise;  // by when it starts at the latest, or why that is not promised
};

struct StartRow {  // of a task that waits
  Subject task;
  std::int64_t p50_us = unknown;  // unknown: not within the horizon
  std::int64_t p90_us = unknown;
};

// When those who wait will start, as far as replays of the pool can tell.
struct ForecastReport {
  PoolStatus pool;
  std::int64_t made_us = unknown;  // no fresh forecast: ask again in a moment
  std::int64_t age_us = unknown;
  std::int64_t draws = 0;
  std::int64_t horizon_us = 0;
  std::vector<StartRow> starts;
};

struct ReplicaRow {
  TaskRow task;
  std::string health;  // "unknown", "starting", "ready", "draining", "failed"
  std::int64_t port = unknown;
};

struct ServiceRow {
  Subject subject;
  std::string user;
  std::string team;
  std::string tier;
  std::string state;
  std::string reason;
  std::string address;  // where requests go, empty when nothing listens
  std::int64_t replicas_min = 0;
  std::int64_t replicas_max = 0;
  std::int64_t replicas_wanted = 0;
  std::int64_t replicas_ready = 0;
  std::int64_t replicas_starting = 0;
  std::int64_t replicas_draining = 0;
  std::int64_t utilisation_ppm = unknown;
};

// What it costs to give devices of a service away and to take them back, and how often that was.
// Lengths are the p90 of the newest that were seen; beside each how many were seen in all.
struct SwitchRow {
  std::string service;
  std::uint32_t owner_uid = 0;
  std::int64_t leave_us = 0, load_us = 0, warm_up_us = 0;
  std::int64_t leaves_seen = 0, loads_seen = 0, warm_ups_seen = 0;
  std::int64_t cost_us = 0;               // of one replica, both ways
  std::int64_t useful_ppm = 0;            // of the time that training held lent devices
  std::int64_t break_even_us = 0;         // idle so long, giving away pays
  std::int64_t dwell_us = unknown;        // idle so long, a replica goes; unknown: not by idle time
  std::int64_t given_of_day = 0;          // replicas, in this hour and the 24 before it
  std::int64_t allowed_of_day = unknown;  // unknown: no budget is set
  std::int64_t again_us = unknown;        // when the budget has one left again, while it has none
  std::int64_t given = 0, taken = 0;      // replicas since the journal began
  std::string device_time;                // of those, a decimal string of milli-GPU·µs
  std::int64_t share_ppm = 0;             // of what the pool provisioned
};

struct ServiceDetail {
  PoolStatus pool;
  ServiceRow row;
  std::vector<Attribute> declared;
  std::vector<ReplicaRow> replicas;
  std::vector<TrailEntry> trail;
  SwitchRow switches;
};

struct StageRow {
  std::string name;
  std::string kind;    // "task", "service"
  std::string work;    // the name of the task or service
  std::string state;   // waiting, running, reading, done, failed, stopped
  std::string reason;  // why it waits, failed or was stopped
  std::vector<std::string> after;
  std::vector<Attribute> metrics;
  std::string artifacts;  // the folder, where it makes some
  std::int64_t since_us = unknown;
};

struct PipelineRow {
  Subject subject;
  std::string user;
  std::string team;
  std::string state;  // waiting, running, done, failed, stopped
  std::int64_t submitted_us = unknown;
  std::int64_t finished_us = unknown;
  std::vector<StageRow> stages;
};

struct PipelineListing {
  PoolStatus pool;
  std::vector<PipelineRow> pipelines;
};
struct PipelineDetail {
  PoolStatus pool;
  PipelineRow row;
};

struct DeviceHolder {
  Subject task;
  std::int64_t compute_milli = 0;
  std::int64_t memory_mib = 0;
};

struct DeviceRow {
  std::string name;  // UUID
  std::string node;
  std::string fault_domain;
  std::string model;
  std::string source;     // "simulated", "nvml"
  std::string partition;  // "shared", "dedicated"
  std::string role;       // "core", "buffer", "guard", "dedicated"
  std::string state;      // "usable", "filtered", "unhealthy", "lost"
  std::string reason;     // why it is not usable
  std::int64_t memory_mib = 0;
  std::int64_t memory_free_mib = 0;
  std::int64_t memory_foreign_mib = unknown;  // used by processes outside the pool
  std::int64_t compute_free_milli = 0;
  std::vector<DeviceHolder> holders;
};

// Devices in milli-GPU.
struct TeamRow {
  std::string name;
  std::string parent;  // empty: the pool
  std::int64_t held_milli = 0;
  std::int64_t claimed_milli = 0;  // by plans of tasks that wait, beside what is held
  std::int64_t leaving_milli = 0;  // of what is held
  std::int64_t guarantee_milli = 0;
  std::int64_t limit_milli = unknown;  // unknown: none
  std::int64_t weight = 1;
  std::int64_t tasks_holding = 0, tasks_waiting = 0;  // its children's too
};
struct TeamListing {
  PoolStatus pool;
  std::vector<TeamRow> teams;  // parents before children
};

struct TaskListing {
  PoolStatus pool;
  std::vector<TaskRow> tasks;
};
struct ServiceListing {
  PoolStatus pool;
  std::vector<ServiceRow> services;
};
struct DeviceListing {
  PoolStatus pool;
  std::vector<DeviceRow> devices;
};

struct EventRow {
  std::uint64_t sequence = 0;
  std::int64_t time_us = 0;
  std::string kind;             // stable, such as "task_submitted", "task_placed"
  std::string subject;          // task, service, device or node name; empty for the pool
  std::uint32_t owner_uid = 0;  // of the subject
  bool about_pool = false;      // everybody sees it; else only the owner and administrators do
  std::string message;
};

struct EventPage {
  std::vector<EventRow> events;
  std::uint64_t last = 0;  // where the next page begins
};

// Whether a task in this state will never run again.
[[nodiscard]] inline bool is_final(std::string_view state) {
  return state == "finished" || state == "failed" || state == "cancelled" || state == "refused" ||
         state == "lost";
}

struct LogChunk {
  std::string bytes;
  std::int64_t next_offset = 0;
  std::string state;  // of the task when read
  std::int64_t exit_code = unknown;
};

// Who used what, since the journal began. Amounts are decimal strings of milli-GPU·µs.
struct UsageReport {
  PoolStatus pool;
  std::string provisioned;
  std::vector<Attribute> categories;  // exclusive; their sum is exactly `provisioned`
  std::int64_t effective_utilisation_ppm = 0;
  std::int64_t unverified_ppm = 0;  // what work without step reports would add, if useful
  std::int64_t tasks = 0;           // replicas apart
  std::int64_t mean_wait_us = 0;
  std::int64_t preemptions = 0;  // of the tasks remembered
  std::int64_t lost_work_us = 0;
  std::vector<SwitchRow> switches;  // of services that were not removed
};

struct GateRow {  // a condition of the check before the next stage of adoption
  std::string name;
  bool met = false;
  std::string detail;
};
struct StageChangeRow {
  std::int64_t time_us = 0;
  std::string from, to;
  bool forced = false;
  std::string by, why;
  std::string missing;  // what its check missed, where it was forced
};
// What the pool was told and what follows from it.
struct PoolDetail {
  PoolStatus pool;
  std::int64_t stage_since_us = unknown;
  std::string next_stage;       // empty: there is none
  std::vector<GateRow> gates;   // before the next one
  std::vector<Attribute> seen;  // measured since the stage began
  std::vector<StageChangeRow> changes;
  std::vector<Attribute> derived;  // keys that the preset gave
};

// The seven days from `from_us`, and the correction of the ratio that they speak for.
struct ReviewReport {
  PoolStatus pool;
  std::int64_t from_us = 0;
  std::int64_t to_us = 0;
  std::string verdict;  // "too-little-data", "more-for-inference", "more-for-training", "no-change"
  std::string why;
  std::string preset_next;            // empty: none is proposed
  std::int64_t guard_next = unknown;  // unknown: none is proposed
  std::int64_t buffer_next = unknown;
  std::vector<std::string> evidence;
  std::vector<Attribute> figures;
};

// Observations of one quantity; unknown while there are too few.
struct ObservedRow {
  std::int64_t count = 0;
  std::int64_t p90 = unknown;
  std::int64_t most = unknown;
};
struct ProfileRow {
  std::string name;  // "TEAM/TYPE"
  std::string kind;
  std::int64_t used_us = 0;
  std::int64_t declared_mib = 0;  // of each device; 0: not declared
  std::int64_t weights_mib = 0, kv_cache_mib = 0, activations_mib = 0, framework_mib = 0;
  ObservedRow memory_mib, work_us, save_us, stall_us, restore_us;
  std::vector<std::uint32_t> owners;  // of its tasks that are remembered, sorted; not in answers
};
struct ProfileListing {
  PoolStatus pool;
  std::vector<ProfileRow> profiles;
};

struct DoctorCheck {
  std::string name;
  std::string state;  // "ok", "warning", "failed"
  std::string message;
  std::string remedy;  // empty when ok
};

struct VersionInfo {
  std::string version;
  std::string commit;
  std::string schema;          // of the journal
  std::uint64_t sequence = 0;  // of the newest record applied
  std::string state_hash;      // of the state after it, in hex: equal to that of a replay
};

}  // namespace neap::api
