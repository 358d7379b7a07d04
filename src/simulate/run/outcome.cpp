#include "simulate/run/outcome.h"

#include <algorithm>

namespace neap::whatif {

Spread spread_of(std::vector<std::int64_t>& values) {
  Spread spread;
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  Wide sum = 0;
  for (const std::int64_t value : values) sum += value;
  const std::size_t count = values.size();
  const auto at = [&](std::size_t percent) {
    const std::size_t rank = (count * percent + 99) / 100;
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  spread.count = static_cast<std::int64_t>(count);
  spread.mean_us = static_cast<std::int64_t>(sum / spread.count);
  spread.p50_us = at(50);
  spread.p90_us = at(90);
  spread.p99_us = at(99);
  spread.max_us = values.back();
  return spread;
}

}  // namespace neap::whatif
