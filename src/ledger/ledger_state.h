// What the ledger remembers between two records. Saved in snapshots and as the closing balances
// of sealed segments.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/events.h"
#include "core/model/result.h"
#include "core/model/units.h"
#include "ledger/account.h"
#include "ledger/metering.h"

namespace neap::ledger {

// The four ways in which device time that no task holds is idle, in the order of Category.
inline constexpr std::size_t idle_count = 4;
inline constexpr std::array<Category, idle_count> idle_categories = {
    Category::guard_idle, Category::fragmented_idle, Category::free, Category::fault};

enum class NodeUse : std::uint8_t { open, unreachable, lost };

struct NodeBook {
  std::string name;
  DeviceId first;
  std::uint32_t count = 0;
  NodeUse use = NodeUse::open;
};

struct DeviceBook {
  NodeId node;
  std::int64_t price_milli = 0;
  bool healthy = true;
  bool excluded = false;
  bool guard = false;
  std::int64_t used_milli = 0;
  std::vector<AllocationId> tenants;
};

using AccountId = Id<struct AccountIdTag>;  // of a team

struct TeamBook {
  std::string name;
  Account account;
};

// Replicas that left for a lower demand or with their service, and that came for a higher demand.
// `time` is their part of what the service's account has as drain and restore, in milli-GPU·µs.
struct Switches {
  std::int64_t given = 0, taken = 0;
  Amount time;
  bool operator==(const Switches&) const = default;
};

struct ServiceBook {
  std::string team;
  Account account;
  Switches switches;
};

struct TaskBook {
  TaskId id;
  std::string name;  // empty for replicas
  AccountId team;
  ServiceId service;
  bool sdk = false, watch = false, signals = false;
  Progress progress;
  Account account;
  bool cancelled = false;
  bool closed = false;      // will never be placed again
  bool for_demand = false;  // a replica that more was asked for

  // Overhead of a preemption goes to this team, from the request to yield until work goes on in
  // an allocation after `asked_in`.
  AccountId charged_to;
  AllocationId asked_in;

  bool waiting = false;
  Time waiting_since;
};

struct AllocationBook {
  AllocationId id;
  TaskId task;
  std::int64_t milli = 0;
  std::int64_t bill_rate = 0;
  std::vector<Slot> slots;
  Meter meter;
  bool shared = false;  // a device was shared since the last report of steps
  StopReason reason = StopReason::none;
};

struct WaitBook {
  std::int64_t tasks = 0;  // submitted, replicas apart
  Amount waited;           // µs, by those that do not wait now
  std::int64_t waiting = 0;
  Amount waiting_since;  // µs, sum over those that wait now
};

struct LedgerState {
  Time now;
  Amount provisioned;                     // up to now
  std::array<Amount, idle_count> idle{};  // up to now
  std::array<std::int64_t, idle_count> idle_milli{};
  Account pool;  // all that tasks hold
  std::vector<NodeBook> nodes;
  std::vector<DeviceBook> devices;
  std::vector<DeviceId> guard;
  std::vector<TeamBook> teams;
  std::vector<ServiceBook> services;  // by ServiceId
  std::uint32_t next_task = 0;
  std::unordered_map<TaskId, TaskBook> tasks;
  std::unordered_map<AllocationId, AllocationBook> allocations;
  std::deque<TaskId> closed;               // oldest first
  std::map<TaskId, AccountId> preemptors;  // by victim, as planned
  WaitBook waits;

  // Derived.
  std::unordered_map<std::string, NodeId> node_ids;
  std::unordered_map<std::string, TaskId> live_tasks;
  std::unordered_map<std::string, AccountId> team_ids;
};

[[nodiscard]] std::string encode(const LedgerState& state);
[[nodiscard]] Result<LedgerState> decode(std::string_view bytes);

}  // namespace neap::ledger
