// A small generator of pseudo-random numbers (splitmix64), the same on every machine: one seed,
// one sequence of arrivals.
#pragma once

#include <cstdint>

namespace neap::load {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  // In (0, 1]: its logarithm is finite.
  double unit() { return static_cast<double>((next() >> 11U) + 1) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace neap::load
