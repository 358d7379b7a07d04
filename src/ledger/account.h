// Where device time goes: categories that exclude each other and together are exactly the
// provisioned time (POLICIES 7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/model/units.h"
#include "ledger/amount.h"

namespace neap::ledger {

enum class Category : std::uint8_t {
  useful_training,    // growth of the highest durable step, at the reference cost of a step
  useful_inference,   // responses within their objective
  unverified,         // training that reports no steps: time up to a durable checkpoint. Shown
                      // apart, never part of "useful"
  lost_and_replayed,  // work that never became durable, and work done again
  checkpoint_stall,
  drain,            // from the last durable state, or from being asked to stop, to the exit
  restore,          // from placement to the first step, or to the first good health check
  interference,     // steps dearer than their reference cost
  slo_missed,       // responses too late
  held_idle,        // held by a task, and nothing of the above
  guard_idle,       // free on devices of the inference guard
  fragmented_idle,  // the rest of a partly used device
  free,
  fault,    // not usable: failed, unreachable, lost or excluded; a replica unhealthy
  pending,  // held, and not yet known which of the above it will be
};
inline constexpr std::size_t category_count = 15;
inline constexpr std::size_t settled_count = category_count - 1;  // all but pending

[[nodiscard]] std::string_view name_of(Category category);

// Rounded down; 0 where there is nothing to be a part of.
[[nodiscard]] std::int64_t ppm_of(Amount part, Amount all);

// The time held by a task, a team, a service or all of them. Grows lazily: `advance` before
// anything is read or changed.
struct Account {
  Time mark;                   // held and billed are exact up to here
  std::int64_t held_rate = 0;  // milli-GPU held
  std::int64_t bill_rate = 0;  // milli-GPU x weight of the device model in thousandths
  Amount held;                 // milli-GPU·µs
  Amount billed;               // milli-GPU·µs x thousandths
  std::array<Amount, settled_count> settled{};

  void advance(Time now) {
    held += Amount::product(held_rate, now.us - mark.us);
    billed += Amount::product(bill_rate, now.us - mark.us);
    mark = now;
  }
};

// What an account or the whole pool amounts to at one moment.
struct Totals {
  Amount provisioned;  // the pool: of its devices. Others: what they held
  std::array<Amount, category_count> by_category{};
  Amount billed;

  [[nodiscard]] Amount of(Category category) const {
    return by_category[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] Amount useful() const {
    return of(Category::useful_training) + of(Category::useful_inference);
  }
  // Effective utilisation in ppm, rounded down; 0 when nothing was provisioned.
  [[nodiscard]] std::int64_t effective_utilisation_ppm() const;
  // Of unverified work: what EU would gain if all of it were useful.
  [[nodiscard]] std::int64_t unverified_ppm() const;
  bool operator==(const Totals&) const = default;
};

}  // namespace neap::ledger
