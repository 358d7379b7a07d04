// How much weight devices can serve, with the counts wanted turned into prices. What it says does
// not depend on what a device would have to change, so devices that can serve the same mixes are
// one family, whatever their layouts are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/rules/partition/search.h"

namespace neap::mig {

using Totals = std::array<std::int64_t, wants_max>;  // by kind

// A price of one is this many parts.
inline constexpr std::int64_t price_unit = 1024;

struct Family {
  std::vector<Counts> mixes;  // what a device can serve; the empty mix first
  std::int64_t devices = 0;
};

class Relaxation {
 public:
  explicit Relaxation(const Demand& demand);

  // Moves the prices, by the subgradient method, so that they bound closely what these devices can
  // serve beyond `served`; begins at the best prices so far.
  void improve(const std::vector<Family>& families, const Totals& served, int rounds);

  // No choice serves more weight beyond `served` of the last improve().
  [[nodiscard]] std::int64_t bound() const { return bound_ / price_unit; }
  // At the prices of that bound.
  [[nodiscard]] std::int64_t price_of(const Counts& mix) const { return price_of(mix, best_); }

 private:
  struct Look {
    std::int64_t value = 0;  // in parts of a weight of one
    Totals excess{};         // offered beyond what is bought
  };
  [[nodiscard]] std::int64_t price_of(const Counts& mix, const Totals& prices) const;
  [[nodiscard]] Look look(const std::vector<Family>& families, const Totals& served,
                          const Totals& prices) const;

  const Demand& demand_;
  Totals best_{};
  std::int64_t top_ = 0;
  std::int64_t bound_ = 0;
};

}  // namespace neap::mig
