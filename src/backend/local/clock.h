// The two clocks of this folder: wall time goes into reports, steady time drives timers.
#pragma once

#include <ctime>

#include "core/model/units.h"

namespace neap::local {

inline std::int64_t read_clock_us(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1'000;
}
inline Time wall_now() { return Time(read_clock_us(CLOCK_REALTIME)); }
inline Time steady_now() { return Time(read_clock_us(CLOCK_MONOTONIC)); }

}  // namespace neap::local
