// Parts of a whole, in millionths.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/units.h"

namespace neap::assess {

inline constexpr std::int64_t million = 1'000'000;
inline constexpr std::int64_t flat_from_ppm = 800'000;  // mean over peak of a flat demand

[[nodiscard]] constexpr std::int64_t ppm_of(Wide part, Wide all) {
  return all <= 0 ? 0 : static_cast<std::int64_t>(part * million / all);
}

// "62.5 %"
[[nodiscard]] inline std::string percent(std::int64_t ppm) {
  const std::int64_t tenths = (ppm + 500) / 1'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace neap::assess
