// Arithmetic of whole numbers that the formulas of the guard need: the core has no floating point.
#pragma once

#include <cstdint>

#include "core/model/units.h"

namespace neap {

inline constexpr std::int64_t hours_of_day = 24;

// Division toward minus infinity; that of C++ truncates. `divisor` > 0.
[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

// Division toward plus infinity. `divisor` > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t quotient = dividend / divisor;
  return dividend % divisor > 0 ? quotient + 1 : quotient;
}

// `value` · `times` / `divisor`, rounded up, with a product of 128 bits. None is negative,
// `divisor` > 0, and the result has to fit.
[[nodiscard]] constexpr std::int64_t scaled_up(std::int64_t value, std::int64_t times,
                                               std::int64_t divisor) {
  const Wide product = Wide{value} * times;
  return static_cast<std::int64_t>((product + divisor - 1) / divisor);
}

// The largest root with root² <= value (Newton's method); `value` >= 0.
[[nodiscard]] constexpr std::int64_t square_root(std::int64_t value) {
  if (value < 2) return value;
  std::int64_t root = value / 2 + 1;  // not below the true root; and from there it only falls
  while (true) {
    const std::int64_t next = (root + value / root) / 2;
    if (next >= root) return root;
    root = next;
  }
}

}  // namespace neap
