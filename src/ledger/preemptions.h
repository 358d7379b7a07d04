// What became of every request to yield, and what each queue could keep of the device time that it
// asked for (SPEC F10, F11). A reducer over the journal's records, fed each of them after apply(),
// with the state as it is then: two that were fed the same agree bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/model/codec.h"
#include "core/model/events.h"
#include "core/model/state.h"
#include "ledger/amount.h"

namespace neap::ledger {

// Of each list the newest so many are kept; the report says from when on it is complete.
inline constexpr std::size_t preemptions_kept = 20'000;

enum class Outcome : std::uint8_t {
  open,       // asked, and not yet known
  done,       // it left
  withdrawn,  // it was told to stay, and did
  failed,     // its grace passed, and it was stopped for that
};
[[nodiscard]] std::string_view name_of(Outcome outcome);

// One task that was asked once to leave its devices.
struct Preemption {
  TaskId task;
  AllocationId allocation;
  std::uint32_t queue = 0;
  ReleaseMode mode{};
  Time asked, promised;  // the p95 of its release
  Outcome outcome{};
  Time ended;
  Micros lost_before{0}, lost{0};
};

// Device time that a queue held, or waited for.
struct Stretch {
  std::uint32_t queue = 0;
  Time from, to;
  std::int64_t milli = 0;
  bool cut = false;  // ended by a preemption
};

// Nearest-rank percentiles.
struct Spread {
  std::int64_t count = 0, p50 = 0, p95 = 0, p99 = 0, most = 0;
  bool operator==(const Spread&) const = default;
};
[[nodiscard]] Spread spread_of(std::vector<std::int64_t> values);

struct PreemptionCounts {
  std::int64_t asked = 0, done = 0, withdrawn = 0, failed = 0, open = 0;
  std::int64_t at_boundary = 0, on_demand = 0, at_end = 0, killed = 0;  // of those that left
  std::int64_t in_time = 0;                                             // within what was promised
  Spread lost, release, promised;                                       // µs
  // Of those that left or failed; all where there was none.
  [[nodiscard]] std::int64_t success_ppm() const;
  bool operator==(const PreemptionCounts&) const = default;
};

struct QueueCapacity {
  std::string team, tier;
  std::int64_t stays = 0, cut = 0;  // allocations that ended in the window, by a preemption
  Amount asked, held, kept;         // milli-GPU·µs; kept: at least P, or not cut
  std::int64_t effective_ppm = 0;   // kept of asked
  bool none = false;                // always preempted before P
  bool operator==(const QueueCapacity&) const = default;
};

struct PreemptionReport {
  Time from, until;
  Time complete_from;  // what ended before is not all known any more
  Micros protect{0};   // P
  PreemptionCounts all;
  PreemptionCounts break_glass;  // killed for capacity: not in `all`
  std::map<std::string, PreemptionCounts> by_team, by_tier;
  std::map<std::string, PreemptionCounts> by_queue;  // "team/tier"
  std::vector<QueueCapacity> queues;                 // sorted by team and tier
  bool operator==(const PreemptionReport&) const = default;
};

class PreemptionBook {
 public:
  void note(const PoolState& state, Time now, const Event& event);
  void note(const PoolState& state, Time now, const Decision& decision);

  [[nodiscard]] PreemptionReport report(const PoolState& state, Time since, Time now) const;

  void encode(Encoder& out) const;
  void decode(Decoder& in);

 private:
  struct Stay {
    Stretch held;
    TaskId task;
    std::int32_t preemptions_before = 0;
    std::uint64_t asking = no_asking;  // the newest
  };
  static constexpr std::uint64_t no_asking = ~std::uint64_t{0};

  [[nodiscard]] std::uint32_t queue_of(const PoolState& state, const TaskState& task);
  [[nodiscard]] Preemption* asking_of(AllocationId allocation);
  void begin_wait(const PoolState& state, TaskId task, Time now);
  void end_wait(TaskId task, Time now);
  void begin_stay(const PoolState& state, const TaskPlaced& placed, Time now);
  void end_stay(const PoolState& state, AllocationId allocation, Time now);
  void ask(const PoolState& state, Preemption asked);
  void keep(std::deque<Stretch>& list, const Stretch& stretch);
  void drop_ended_waits(const PoolState& state);

  struct Queue {
    std::string team, tier;
  };
  std::vector<Queue> queues_;
  std::deque<Preemption> askings_;  // the first of them is number first_asking_
  std::uint64_t first_asking_ = 0;
  std::deque<Stretch> stays_, waits_;  // ended
  std::map<AllocationId, Stay> held_;
  std::map<TaskId, Stretch> waiting_;
  Time complete_from_;
  std::uint64_t records_ = 0;
};

NEAP_FIELDS_BEGIN(Preemption)
NEAP_ROW(task, allocation, queue, mode, asked, promised, outcome, ended)
NEAP_ROW(lost_before, lost)
NEAP_FIELDS_END
NEAP_FIELDS(Stretch, queue, from, to, milli, cut)

}  // namespace neap::ledger
