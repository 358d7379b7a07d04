// What benchmarks have in common: chance that is the same in every run, and order statistics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/chance.h"

namespace neap::bench {

// 0 .. end - 1; `end` > 0.
template <class T>
[[nodiscard]] T below(trace::Chance& chance, T end) {
  return static_cast<T>(chance.below(static_cast<std::uint64_t>(end)));
}

// Durations, all in one unit that the user knows.
struct Samples {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  [[nodiscard]] bool empty() const { return values.empty(); }
  // The value below which the part `q` of all lies; 0 without any.
  [[nodiscard]] double at(double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const auto i = static_cast<std::size_t>(q * static_cast<double>(values.size()));
    return values[std::min(values.size() - 1, i)];
  }
};

}  // namespace neap::bench
