#include "core/rules/place/leftover_table.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::leftover {

bool is_table(std::span<const std::int32_t> values) {
  return values.size() == core_rows * idle_steps &&
         std::all_of(values.begin(), values.end(),
                     [](std::int32_t v) { return v >= 0 && v <= whole * potential_unit; });
}

LeftoverTable table_of(std::span<const std::int32_t> values) {
  NEAP_CHECK(is_table(values));
  LeftoverTable table;
  for (std::size_t row = 0; row < core_rows; ++row) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * idle_steps), idle_steps,
                table.values[row].begin());
  }
  return table;
}

std::vector<std::int32_t> values_of(const LeftoverTable& table) {
  std::vector<std::int32_t> values;
  values.reserve(core_rows * idle_steps);
  for (const auto& row : table.values) values.insert(values.end(), row.begin(), row.end());
  return values;
}

}  // namespace neap::leftover
