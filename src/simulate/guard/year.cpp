#include "simulate/guard/year.h"

#include <algorithm>
#include <array>

#include "trace/chance.h"

namespace neap::simulate {

namespace {

constexpr std::int64_t unit = 1'000'000;
constexpr std::int64_t mean_micro_per_second = 1'180 * unit;
constexpr std::int64_t slots_per_hour = 6;
// Thousandths of the mean by hour of the day.
constexpr std::array<std::int64_t, 24> day_curve = {
    824,   701,   747,   698,   710,   726,   763, 870,   997,   1'129, 1'104, 1'073,
    1'041, 1'054, 1'041, 1'027, 1'071, 1'059, 989, 1'206, 1'428, 1'375, 1'246, 1'043};

// About normal, with a standard deviation of `deviation`: the sum of twelve even draws.
std::int64_t bell(trace::Chance& chance, std::int64_t deviation) {
  constexpr std::int64_t wide = 65'536;
  std::int64_t sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<std::int64_t>(chance.below(wide));
  return (sum - 6 * wide) * deviation / wide;
}

// A part that forgets a share of itself with each step and keeps its spread.
struct Drifting {
  std::int64_t keep;       // per mille
  std::int64_t deviation;  // of each step
  std::int64_t value = 0;

  std::int64_t next(trace::Chance& chance) {
    value = value * keep / 1'000 + bell(chance, deviation);
    return value;
  }
};

}  // namespace

std::vector<std::optional<std::int64_t>> draw_year(const YearSpec& spec,
                                                   const std::vector<Change>& changes) {
  trace::Chance chance(spec.seed);
  Drifting days{700, 105'000};  // ppm: a spread of 0.15 over days
  Drifting slow{970, 38'000};   // 0.16 over hours
  std::int64_t jump = 0;
  std::int64_t jump_left = 0;
  std::int64_t outage_left = 0;
  std::vector<std::optional<std::int64_t>> offered;
  for (std::int64_t slot = 0; slot < spec.days * year_slots_per_day; ++slot) {
    if (slot % year_slots_per_day == 0) days.next(chance);
    const std::int64_t quick = bell(chance, 75'000);
    if (jump_left-- <= 0) jump = 0;
    if (jump == 0 && chance.below(80) == 0) {
      jump = bell(chance, 400'000);
      jump_left = 1 + static_cast<std::int64_t>(chance.below(4));
    }
    // Runs of three slots on average.
    if (outage_left-- <= 0 &&
        chance.below(3'000) < static_cast<std::uint64_t>(spec.outages_per_mille)) {
      outage_left = static_cast<std::int64_t>(chance.below(5));
    }
    const std::int64_t noise = slow.next(chance) + quick + jump;
    std::int64_t level = mean_micro_per_second / 1'000 *
                         day_curve[static_cast<std::size_t>(slot / slots_per_hour % 24)];
    level = level / 1'000 * std::max<std::int64_t>(200'000, unit + days.value) / 1'000;
    level = level / 1'000 * std::max<std::int64_t>(100'000, unit + noise) / 1'000;
    for (const Change& change : changes) {
      if (slot >= change.first && slot <= change.last) level = level / 100 * change.percent;
    }
    offered.emplace_back(outage_left >= 0 ? 0 : level);
  }
  return offered;
}

}  // namespace neap::simulate
