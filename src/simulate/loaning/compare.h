// Paired ratios over seeds: the geometric mean with a 95 % t interval of the logarithms.
#pragma once

#include <span>
#include <vector>

namespace neap::loaning {

struct Ratio {
  double mean = 1, low = 1, high = 1;
  int pairs = 0;
};

// above[i] / below[i]. Values under `least` count as `least`: a wait of nothing has no ratio.
struct Pairs {
  std::span<const double> above, below;
  double least = 0;
};
[[nodiscard]] Ratio ratio_of(const Pairs& pairs);

// Two-sided 95 % quantile of Student's t.
[[nodiscard]] double t_95(int degrees);

}  // namespace neap::loaning
