// Read models of the journal that the daemon keeps in memory beside the state: the ledger, and
// the trail of each task. They are part of snapshots, so that a restart need not read everything.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/model/codec.h"
#include "core/model/events.h"
#include "core/model/state.h"
#include "ledger/checkpoints.h"
#include "ledger/ledger.h"
#include "ledger/preemptions.h"
#include "ledger/weeks.h"

namespace neap::daemon {

// One applied record.
struct Record {
  std::uint64_t sequence = 0;
  Time time;
  std::variant<Event, Decision> body;
  // Of a report: the task it came from, found before the report ended its allocation.
  TaskId reporter;
};

struct TrailStep {
  std::uint64_t sequence = 0;
  Time time;
  Phase phase{};
  std::string place;  // node and device indices
  std::string reason;
};

class Books {
 public:
  static constexpr std::size_t trail_kept = 64;  // steps of one task

  // After apply(state, time, record).
  void note(const PoolState& state, const Record& record);

  [[nodiscard]] std::vector<TrailStep> trail_of(TaskId task) const;
  // Also of allocations that have ended, as long as their task is remembered.
  [[nodiscard]] TaskId task_of(AllocationId allocation) const;

  [[nodiscard]] const ledger::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const ledger::PreemptionBook& preemptions() const { return preemptions_; }
  [[nodiscard]] const ledger::CheckpointBook& checkpoints() const { return checkpoints_; }
  [[nodiscard]] const ledger::Weeks& weeks() const { return weeks_; }

  void encode(Encoder& out) const;
  [[nodiscard]] Result<void> decode(Decoder& in);
  // Closing balances of a sealed segment.
  void encode_balances(Encoder& out) const;

 private:
  void add(const PoolState& state, const Record& record, TaskId task, std::string reason);

  std::unordered_map<TaskId, std::deque<TrailStep>> trails_;
  std::unordered_map<AllocationId, TaskId> allocations_;
  ledger::Ledger ledger_;
  ledger::PreemptionBook preemptions_;
  ledger::CheckpointBook checkpoints_;
  ledger::Weeks weeks_;
};

NEAP_FIELDS(TrailStep, sequence, time, phase, place, reason)

// State and books as one blob of the journal.
[[nodiscard]] std::string encode_checkpoint(const PoolState& state, const Books& books);
struct Restored {
  PoolState state;
  Books books;
};
[[nodiscard]] Result<Restored> decode_checkpoint(std::string_view bytes);

}  // namespace neap::daemon
