// The weekly review (SPEC D10): what was measured in a week, and the one correction of the ratio
// between the two kinds of work that it speaks for, if any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "ledger/weeks.h"

namespace neap::ledger {

// Fewer days of data say nothing about a week.
inline constexpr std::int64_t review_days_needed = 5;

struct WeekFigures {
  std::int64_t minutes = 0;  // seen
  std::int64_t devices = 0;  // usable
  // Devices that inference needed: on average in thousandths, and in the slots of ten minutes the
  // 95th percentile of their highest minute, and the highest.
  std::int64_t needed_milli = 0, needed_p95 = 0, needed_peak = 0;
  std::int64_t trained_milli = 0;
  std::int64_t guard_idle_ppm = 0;  // of the guard's time; 0 where there is no guard
  std::int64_t short_minutes = 0;
  std::int64_t waiting_milli = 0;  // training tasks that waited, on average
  std::int64_t yields = 0, kept = 0;
};

enum class Verdict : std::uint8_t { too_little_data, more_for_inference, more_for_training, none };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Review {
  WeekFigures week;
  Verdict verdict{};
  Preset preset_next = Preset::none;  // none: guard and buffer are proposed instead
  std::int64_t guard_next = 0, buffer_next = 0;
  std::string why;
  std::vector<std::string> evidence;
};

// Slots of [from, to).
[[nodiscard]] WeekFigures figures_of(const Weeks& weeks, Time from, Time to);
[[nodiscard]] Review review(const WeekFigures& week, const PoolSpec& spec);

}  // namespace neap::ledger
