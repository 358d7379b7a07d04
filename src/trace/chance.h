// Chance with the same numbers from the same seed on every machine and compiler, which the
// distributions of the standard library do not promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::trace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  // 0 .. end - 1 without bias; `end` > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    const std::uint64_t unbiased = UINT64_MAX - UINT64_MAX % end;
    std::uint64_t draw = next();
    while (draw >= unbiased) draw = next();
    return draw % end;
  }
  // At least 0 and below 1.
  [[nodiscard]] double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace neap::trace
