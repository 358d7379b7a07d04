// What a pool looked like, minute by minute, summed over slots: what the weekly review reads
// (SPEC D10). A read model: it is looked at once a minute at most, and what is kept is bounded.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/model/codec.h"
#include "core/model/state.h"

namespace neap::ledger {

struct WeekSlot {
  std::int64_t number = 0;   // of the slot since the epoch
  std::int64_t minutes = 0;  // seen
  std::int64_t devices = 0;  // usable, the most
  // Sums over minutes, in milli-GPU: what inference needed, what training held, what was free of
  // the guard, and all of the guard.
  std::int64_t needed = 0, trained = 0, guard_free = 0, guard = 0;
  std::int64_t needed_most = 0;       // milli-GPU in one minute
  std::int64_t short_minutes = 0;     // some service had fewer replicas ready than its load needed
  std::int64_t waiting = 0;           // training that waited, task-minutes
  std::int64_t yields = 0, kept = 0;  // asked to make room; of those, left with their work saved
};
inline constexpr Micros week_slot = minutes(10);
inline constexpr std::size_t week_slots_kept = 5 * 7 * 24 * 6;

class Weeks {
 public:
  // After each record, with the state as it is then.
  void note(const PoolState& state);

  [[nodiscard]] const std::deque<WeekSlot>& slots() const { return slots_; }

  void encode(Encoder& out) const;
  [[nodiscard]] bool decode(Decoder& in);

 private:
  WeekSlot& slot_at(Time at);
  void sample(const PoolState& state);

  std::deque<WeekSlot> slots_;    // by number; those in which nothing was seen are not there
  std::optional<WeekSlot> last_;  // the last sample, as one minute
  std::int64_t minute_ = -1;      // the last that was sampled
  std::int64_t yields_ = 0, kept_ = 0;
  Time since_;  // the stage in which these were counted
};

NEAP_FIELDS_BEGIN(WeekSlot)
NEAP_ROW(number, minutes, devices, needed, trained, guard_free, guard, needed_most)
NEAP_ROW(short_minutes, waiting, yields, kept)
NEAP_FIELDS_END

}  // namespace neap::ledger
