// Which device serves what: a choice of one option for each group of equal devices. What is
// served comes first, then what it costs; see Score.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/rules/partition/options.h"

namespace neap::mig {

// Devices of one model and one layout.
struct Group {
  std::vector<Option> options;         // the one that serves nothing first
  std::vector<std::uint32_t> devices;  // ascending
};

struct Score {
  std::int64_t worth = 0;  // weight served
  Cost cost;

  // Greater is better: more weight served, then the smaller cost.
  constexpr std::strong_ordering operator<=>(const Score& o) const {
    if (worth != o.worth) return worth <=> o.worth;
    return o.cost <=> cost;
  }
  constexpr bool operator==(const Score&) const = default;
};

// By group and within it by device, in their order: the option chosen.
struct Choice {
  std::vector<std::vector<std::uint32_t>> options;
  Score score;
  std::int64_t worth_bound = 0;  // no choice serves more weight than that
};

inline constexpr std::size_t exact_devices = 4;

// The best choice, by dynamic programming over what is served; nothing when that would take more
// states than `states_max` for one device.
[[nodiscard]] std::optional<Choice> search_exact(const std::vector<Group>& groups,
                                                 const Demand& demand, std::size_t states_max);

// A good choice in bounded work, with an upper bound of the weight: prices from a Lagrangian
// relaxation of the counts, choices built by price and by weight, then exchanges of pairs.
[[nodiscard]] Choice search_bounded(const std::vector<Group>& groups, const Demand& demand);

}  // namespace neap::mig
