// What it costs to give a replica's devices to training and to take them back, and what follows
// from it (SPEC D5; POLICIES 3; docs/decisions/0024): how long devices must have been idle before
// they are given away, and how many a day may be.
//
//     c   = leave + load + warm-up, each the p90 of the newest that were seen
//     H*  = c / u            u: useful part of the time that training held lent devices, <= 1
//     f   = R x day x budget / c     R: replicas that the service may have
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/state.h"

namespace neap {

// Of one switch of one replica, both ways.
struct SwitchPrice {
  Micros leave, load, warm_up;
  std::int64_t left = 0, loaded = 0, warmed = 0;  // observations behind each
  [[nodiscard]] Micros all() const { return leave + load + warm_up; }
};

// Of the present version; of several device models the dearest. While fewer than
// observations_needed were seen, the greatest of them counts, and not less than what is expected:
// what the version before cost, else what is declared (scale.switch_leave, scale.switch_load).
[[nodiscard]] SwitchPrice price_of(const PoolState& state, const ServiceState& service);

// u, from a tenth to all; all until enough device time was seen.
[[nodiscard]] Ppm useful_lent(const PoolState& state);

// H*; a day at most.
[[nodiscard]] Micros break_even(const PoolState& state, const ServiceState& service);
// So long fewer must be enough before replicas go: scale.dwell, or H* where that is measured.
[[nodiscard]] Micros dwell_of(const PoolState& state, const ServiceState& service);

// Replicas that may be given away a day; nothing: no budget is set.
[[nodiscard]] std::optional<std::int64_t> switches_allowed(const PoolState& state,
                                                           const ServiceState& service);
// Given away in the hour of `now` and the 24 before it, which hold every day that ends now.
[[nodiscard]] std::int64_t switches_of_day(const ServiceState& service, Time now);
// Of the budget; nothing: there is none.
[[nodiscard]] std::optional<std::int64_t> switches_left(const PoolState& state,
                                                        const ServiceState& service, Time now);
// Services, by name, that would give devices away now, were any of the budget left; empty: none.
[[nodiscard]] std::string kept_by_budget(const PoolState& state, Time now);
// The moment from which one more is left, if none is now.
[[nodiscard]] Time switches_again_at(const PoolState& state, const ServiceState& service, Time now);

// ---- for apply -------------------------------------------------------------------------------

// A replica that holds devices is asked to leave for a lower demand.
void note_given(PoolState& state, TaskState& task);
// Its processes are gone.
void note_left(PoolState& state, const TaskState& task);
// It is healthy for the first time.
void note_loaded(PoolState& state, TaskState& task);
void note_answers(PoolState& state, TaskState& task, const RequestsServed& served);
// An allocation of training ends, before its progress is booked.
enum class Saved : std::uint8_t { all, captured };
void note_lent_use(PoolState& state, const TaskState& task, Saved saved);

}  // namespace neap
