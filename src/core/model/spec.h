// What people ask for, as the core understands it: the pool's configuration, nodes, tasks and
// services. Files and API bodies become these through src/config; nothing here is trusted to be
// consistent until rules/admit.h has checked it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/units.h"

namespace neap {

// The kind of work a tier carries; it decides which devices it may use and who may preempt it
// (SPEC D1: online inference > interactive training > batch training).
enum class Purpose : std::uint8_t { inference, interactive, batch };

struct TierSpec {
  std::string name;
  std::int32_t weight = 0;
  Purpose purpose = Purpose::batch;
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
  std::int32_t rounds = 2;                      // A-evicts-B rounds within one checkpoint interval
  std::int32_t missed_checkpoints = 3;          // then admission is revoked (D12)
};

// Replica scaling (SPEC D5, S13). Ppm of the capacity of the ready replicas in use.
struct ScaleSpec {
  Ppm up_above{700'000};
  Micros up_for = minutes(3);
  Ppm down_below{200'000};
  Micros down_for = minutes(5);
  Micros stale_after = seconds(30);  // a longer gap between samples is "unknown"
};

struct PrefilterSpec {  // SPEC A2
  Ppm out_above{700'000};
  Ppm back_below{600'000};
  Micros back_after = minutes(5);
};

struct PoolSpec {
  std::string name = "default";
  std::int32_t total_gpus = 0;  // 0 = whatever is found
  std::int32_t inference_guard_min = 0;
  std::int32_t elastic_buffer = 0;
  PreemptSpec preempt;
  ScaleSpec scale;
  PrefilterSpec prefilter;
  std::vector<TierSpec> tiers;  // sorted by weight descending, then name; TierId is the index
  std::string baseline;         // runtime baseline (A5); empty accepts any
  MiB share_min_memory{0};      // A7: smaller devices are not shared
  MiB device_reserve{0};        // kept free on each device beside the quotas (C1)
  std::int32_t max_restarts = 3;
};

struct DeviceSpec {
  std::string uuid;
  std::string model;  // such as A100-80G
  MiB memory{0};
  bool dedicated = false;  // outside the shared pool: for tasks that fail A4
};

struct NodeSpec {
  std::string name;
  std::string fault_domain;
  std::vector<DeviceSpec> devices;
};

// What one task asks of devices.
struct Request {
  std::int32_t count = 1;           // devices; more than a node holds makes it span nodes
  MilliGpu share = whole_device;    // of each device, 1..1000
  MiB memory{0};                    // of each device; 0 with a whole share = all of it
  std::vector<std::string> models;  // allowed device models, sorted; empty = any
  std::string trust_domain;         // A6: devices are shared only inside one
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
};

}  // namespace neap
