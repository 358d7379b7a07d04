#include "simulate/loaning/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace neap::loaning {

double t_95(int degrees) {
  static constexpr std::array<double, 30> table = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees < 1) return INFINITY;
  if (degrees <= 30) return table[static_cast<std::size_t>(degrees - 1)];
  return 2.042;  // too wide rather than too narrow
}

Ratio ratio_of(const Pairs& pairs) {
  const std::size_t count = std::min(pairs.above.size(), pairs.below.size());
  Ratio ratio;
  ratio.pairs = static_cast<int>(count);
  if (count == 0) return ratio;
  std::vector<double> logs;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    logs.push_back(
        std::log(std::max(pairs.above[i], pairs.least) / std::max(pairs.below[i], pairs.least)));
    sum += logs.back();
  }
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const double each : logs) squares += (each - mean) * (each - mean);
  const auto degrees = static_cast<double>(count - 1);
  const double error = count > 1 ? std::sqrt(squares / degrees / static_cast<double>(count)) : 0;
  const double half = count > 1 ? t_95(static_cast<int>(count) - 1) * error : INFINITY;
  ratio.mean = std::exp(mean);
  ratio.low = std::exp(mean - half);
  ratio.high = std::exp(mean + half);
  return ratio;
}

}  // namespace neap::loaning
