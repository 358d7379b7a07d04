// How results add up, and which class a request is of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "load/generator.h"
#include "load/random.h"

namespace neap::load {

// All but `scheduled`. Gaps are those between tokens.
void add(LoadTotals& totals, const RequestResult& result, std::span<const Micros> gaps,
         const LoadObjective& objective);

class ClassChoice {
 public:
  ClassChoice(const std::vector<LoadClass>& classes, std::uint64_t seed);
  // 0 where there are no classes.
  [[nodiscard]] std::uint32_t choose();

 private:
  std::vector<std::uint64_t> upto_;  // sums of weights
  Random random_;
};

}  // namespace neap::load
