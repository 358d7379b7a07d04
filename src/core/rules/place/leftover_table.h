// What a device's free part is worth: how much of it is expected to be free still when the pool
// has filled up. Learned from what the pool is asked for, read by placement. Integers alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rules/place/supply.h"

namespace neap::leftover {

// Free cores per device decide whether its free part can be used at all, so the table has a row
// for each of these bounds: a node of n cores a device is in row |{bound <= n}|.
inline constexpr std::size_t core_rows = 21;
inline constexpr std::size_t idle_steps = 101;          // free milli of a device by tens
inline constexpr std::int64_t potential_unit = 10'000;  // of one milli

// The row of so many half cores.
inline constexpr std::array<std::uint8_t, 61> row_of_half_cores = [] {
  constexpr std::array<int, core_rows - 1> bounds = {1,  2,  4,  6,  8,  10, 12, 14, 16, 18,
                                                     20, 22, 24, 26, 28, 32, 36, 40, 50, 60};
  std::array<std::uint8_t, 61> rows{};
  for (int half = 0; half <= 60; ++half) {
    for (const int bound : bounds)
      if (half >= bound) ++rows[static_cast<std::size_t>(half)];
  }
  return rows;
}();

// Of a device that is partly used: by the free cores of its node.
[[nodiscard]] inline std::size_t row_of_shared(std::int32_t cpu_milli) {
  return row_of_half_cores[static_cast<std::size_t>(std::min(cpu_milli / 500, 60))];
}
// Of one that is wholly free: by the free cores of its node per free device.
[[nodiscard]] inline std::size_t row_of_unused(std::int32_t cpu_milli, std::int32_t free_milli) {
  const std::int32_t half = free_milli > 0 ? 2 * cpu_milli / free_milli : 60;
  return row_of_half_cores[static_cast<std::size_t>(std::min(half, 60))];
}
[[nodiscard]] inline std::size_t step_of(std::int32_t idle_milli) {
  return static_cast<std::size_t>(idle_milli) / 10;
}

struct LeftoverTable {
  // Expected leftover in 1/10000 milli, by row and step.
  std::array<std::array<std::int32_t, idle_steps>, core_rows> values{};
};

// The same row by row, as the state keeps it. Values are 0 to a whole device.
[[nodiscard]] bool is_table(std::span<const std::int32_t> values);
[[nodiscard]] LeftoverTable table_of(std::span<const std::int32_t> values);  // of a table
[[nodiscard]] std::vector<std::int32_t> values_of(const LeftoverTable& table);

}  // namespace neap::leftover
