// Chance for the simulator: the same numbers from the same seed on every machine and compiler,
// which the distributions of the standard library do not promise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/units.h"

namespace neap::simulated {

// SplitMix64 (Steele, Lea, Flood 2014): one step of the generator that seeds the other.
[[nodiscard]] std::uint64_t split_mix(std::uint64_t& state);

// xoshiro256** (Blackman, Vigna 2018), seeded through SplitMix64 as its authors advise.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  [[nodiscard]] std::uint64_t next();
  // 0 .. end - 1, without bias; `end` > 0.
  [[nodiscard]] std::int64_t below(std::int64_t end);
  // first .. last, both included.
  [[nodiscard]] std::int64_t between(std::int64_t first, std::int64_t last);
  [[nodiscard]] Micros between(Micros first, Micros last);
  [[nodiscard]] bool chance(Ppm probability);
  // A wait whose mean is about `mean`, as between rare independent faults.
  [[nodiscard]] Micros wait(Micros mean);
  template <class T>
  [[nodiscard]] const T& pick(std::span<const T> choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))];
  }
  template <class T, std::size_t N>
  [[nodiscard]] const T& pick(const std::array<T, N>& choices) {
    return pick(std::span<const T>(choices));
  }
  // A generator of its own, so that more draws in one part do not shift those of another.
  [[nodiscard]] Random fork();

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace neap::simulated
