#include "simulate/leftover/sightings.h"

#include <algorithm>
#include <cmath>

namespace neap::simulate {

FirstGuess first_guess(const Workload& workload) {
  FirstGuess guess{};
  double all = 0;
  for (std::size_t c = 0; c < workload.typical; ++c) {
    const TaskClass& task_class = workload.classes[c];
    if (task_class.demand.count != 1) continue;
    const auto count = static_cast<double>(task_class.count);
    all += count;
    for (std::size_t step = 0; step < idle_steps; ++step) {
      const auto idle = static_cast<std::int32_t>(step * 10);
      if (idle < task_class.demand.each) guess[step] += count * idle;
    }
  }
  for (double& g : guess) g /= std::max(all, 1.0);
  return guess;
}

LeftoverTable table_of(const Sums& sums, const FirstGuess& guess) {
  constexpr double shrinkage = 10;
  LeftoverTable table;
  for (std::size_t step = 0; step < idle_steps; ++step) {
    double leftover = shrinkage * guess[step], seen = shrinkage;
    for (std::size_t row = 0; row < core_rows; ++row) {
      leftover += static_cast<double>(sums.leftover[row][step]);
      seen += static_cast<double>(sums.seen[row][step]);
    }
    const double mean = leftover / seen;
    for (std::size_t row = 0; row < core_rows; ++row) {
      const double value = (static_cast<double>(sums.leftover[row][step]) + shrinkage * mean) /
                           (static_cast<double>(sums.seen[row][step]) + shrinkage);
      table.values[row][step] =
          static_cast<std::int32_t>(std::llround(value * static_cast<double>(potential_unit)));
    }
  }
  return table;
}

}  // namespace neap::simulate
