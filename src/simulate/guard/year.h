// Synthetic traffic of any length with the statistics of a recorded fortnight, for what no public
// trace is long enough to show. Whole numbers: the same seed gives the same traffic everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace neap::simulate {

// Slots of 600 s, as the trace has them. Fitted to Alibaba's ServeGen, m-small (14 days): mean by
// hour of the day, spread of whole days, and what is left, a slow and a quick part, with rare jumps
// and gaps (backtest_test.cpp compares).
struct YearSpec {
  std::uint64_t seed = 1;
  std::int64_t days = 365;
  std::int64_t outages_per_mille = 18;  // of the slots
};

// What happens to the traffic in slots first to last.
struct Change {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t percent = 100;
};

inline constexpr std::int64_t year_slots_per_day = 144;

// Offered, in millionths of a request a second; an outage of the metrics shows as nothing at all.
[[nodiscard]] std::vector<std::optional<std::int64_t>> draw_year(
    const YearSpec& spec, const std::vector<Change>& changes = {});

}  // namespace neap::simulate
