// The checkpoint contract as it is kept (SPEC D12): what was seen of each task's intervals, saves
// and restores, beside what it declares. A reducer over the journal's records, fed each of them
// after apply().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/model/codec.h"
#include "core/model/events.h"
#include "core/model/state.h"
#include "ledger/preemptions.h"

namespace neap::ledger {

inline constexpr std::size_t checkpoints_kept = 256;  // newest samples of each kind, of one task

struct CheckpointsSeen {
  std::vector<Micros> intervals;  // between two captured states, or from the start to the first
  std::vector<Micros> saves, stalls;
  std::vector<Micros> restores;    // from a placement after a run to the first step
  std::int64_t checkpoints = 0;    // in all
  std::int64_t asked = 0;          // overdue ones that the pool asked for
  std::int64_t restarts = 0;       // placements after the first
  std::int64_t late_restores = 0;  // beyond the declared objective
  AllocationId allocation;         // whose restore is awaited
  Time captured;                   // the newest durable state, or the start of this run
};

class CheckpointBook {
 public:
  void note(const PoolState& state, Time now, const Event& event, TaskId reporter);
  void note(const PoolState& state, const Decision& decision);
  // Of tasks that are forgotten nothing is kept.
  void forget(const PoolState& state);

  // nullptr: nothing was seen of it.
  [[nodiscard]] const CheckpointsSeen* of(TaskId task) const;

  void encode(Encoder& out) const;
  void decode(Decoder& in);

 private:
  std::map<TaskId, CheckpointsSeen> seen_;
};

[[nodiscard]] Spread spread_of(const std::vector<Micros>& lengths);

NEAP_FIELDS_BEGIN(CheckpointsSeen)
NEAP_ROW(intervals, saves, stalls, restores, checkpoints, asked, restarts, late_restores)
NEAP_ROW(allocation, captured)
NEAP_FIELDS_END

}  // namespace neap::ledger
