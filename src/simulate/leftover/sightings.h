// What learning has seen, and the table that follows from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/rules/place/leftover_table.h"
#include "simulate/openb/workload.h"

namespace neap::simulate {

using leftover::core_rows;
using leftover::idle_steps;
using leftover::LeftoverTable;
using leftover::potential_unit;
using leftover::row_of_shared;
using leftover::row_of_unused;
using leftover::step_of;

// What has been seen: for devices in one row and step, how much they had free in the end.
struct Sums {
  std::array<std::array<std::int64_t, idle_steps>, core_rows> leftover{};
  std::array<std::array<std::int64_t, idle_steps>, core_rows> seen{};

  void add(std::size_t row, std::size_t step, std::int64_t milli) {
    leftover[row][step] += milli;
    ++seen[row][step];
  }
};

using FirstGuess = std::array<double, idle_steps>;

// Before anything is seen: free parts that are too small for a pod stay free.
[[nodiscard]] FirstGuess first_guess(const Workload& workload);

// Rows and steps that were seldom seen are drawn towards the mean of their step, and steps that
// were seldom seen towards the first guess.
[[nodiscard]] LeftoverTable table_of(const Sums& sums, const FirstGuess& guess);

}  // namespace neap::simulate
