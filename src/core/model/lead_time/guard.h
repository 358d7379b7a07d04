// The lead-time guard: how many devices inference may claim in the next slot, so that the demand
// exceeds them in a stated part of the hours (SPEC D4; POLICIES section 2 has the formulas, whose
// letters are in the comments here).
//
// A stream: `begin` opens the first slot, `advance` closes the open slot with its demand and
// opens the next. Only what has closed counts; memory is bounded by two weeks of hours.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/result.h"

namespace neap::lead_time {

inline constexpr std::int64_t most_devices = 1'000'000;  // keeps all products within 64 bits
inline constexpr std::int32_t hour_seconds = 3'600;
inline constexpr std::int32_t shortest_slot_seconds = 60;

struct GuardSpec {
  std::int64_t devices = 1;                // P: of the pool; may change from slot to slot
  std::int32_t slot_seconds = 300;         // divides an hour
  std::int32_t lead_seconds = 600;         // L: until lent devices are back; at most an hour
  std::int32_t violations_per_mille = 10;  // x: hours in which the demand may exceed the guard

  [[nodiscard]] std::int32_t slots_per_hour() const { return hour_seconds / slot_seconds; }  // n
  [[nodiscard]] std::int32_t lead_slots() const {                                            // k
    return (lead_seconds + slot_seconds - 1) / slot_seconds;
  }
  bool operator==(const GuardSpec&) const = default;
};

// Names the field that is wrong and what was expected.
[[nodiscard]] Result<void> check(const GuardSpec& spec);

struct Hour {
  std::optional<std::int64_t> peak;    // highest known demand
  std::optional<std::int64_t> excess;  // e: of the demand over the base, in roots of it, times 2^20
  std::optional<bool> violated;        // v: the demand exceeded the guard
  bool ready = false;                  // enough was known to derive a guard

  bool operator==(const Hour&) const = default;
};

// All that the rule remembers. A copy goes on as the original does.
struct GuardState {
  std::int64_t slot = 0;               // the open one, counted from the first
  std::optional<std::int64_t> last;    // the last known demand
  std::vector<Hour> hours;             // closed ones, the newest last
  Hour open;                           // the hour that the open slot is in
  std::vector<std::int64_t> raised;    // b of the last n + 1 slots, the newest last
  std::vector<std::int64_t> dwelling;  // G of the last k + 1 slots
  std::int64_t base = 1;               // B of the open slot
  std::int64_t quantile = 0;           // q of the open hour
  std::int64_t tracked = 0;            // th: what the outcomes so far have added to it
  std::int64_t derived = 0;            // C before the calendar's floor
  std::int64_t guard = 0;              // C of the open slot: 1 to P

  // Before there are 24 hours to learn from the whole pool is the guard: nothing is lent.
  [[nodiscard]] bool ready() const { return open.ready; }
  bool operator==(const GuardState&) const = default;
};

struct ClosedSlot {
  // Nothing: unknown. It is neither learned from nor held against the guard.
  std::optional<std::int64_t> demand;  // devices, 0 to most_devices
  std::int64_t next_floor = 0;         // the calendar's, of the slot that is opened
};

// `floor`: the calendar's, of the first slot.
[[nodiscard]] GuardState begin(const GuardSpec& spec, std::int64_t floor = 0);
void advance(const GuardSpec& spec, GuardState& state, const ClosedSlot& closed);

}  // namespace neap::lead_time
