// What one device can do for a demand: for every mix of kinds that fits it, the cheapest way.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/rules/partition/wants.h"

namespace neap::mig {

// Instances served, by kind.
using Counts = std::array<std::uint8_t, wants_max>;

// What serving takes and leaves; sums over devices. A smaller one is better.
struct Cost {
  std::int64_t touched = 0;    // devices whose layout changes
  std::int64_t churn = 0;      // instances destroyed and created
  std::int64_t not_whole = 0;  // devices on which anything is busy or serves
  std::int64_t closed = 0;     // what larger work can no longer use, see open_slices

  constexpr auto operator<=>(const Cost&) const = default;
  constexpr Cost& operator+=(const Cost& o) {
    touched += o.touched;
    churn += o.churn;
    not_whole += o.not_whole;
    closed += o.closed;
    return *this;
  }
  constexpr Cost& operator-=(const Cost& o) {
    touched -= o.touched;
    churn -= o.churn;
    not_whole -= o.not_whole;
    closed -= o.closed;
    return *this;
  }
};

struct Service {
  Place place;
  std::size_t kind = 0;  // index into the demand
};

struct Option {
  Counts counts{};
  Cost cost;
  std::vector<Service> services;
};

// The legal layouts of the wanted profiles, by model of a demand: found once, used by every
// device of the model.
class LayoutBook {
 public:
  explicit LayoutBook(const Demand& demand);
  [[nodiscard]] std::span<const std::vector<Place>> of(std::size_t model_slot) const {
    return layouts_[model_slot];
  }

 private:
  std::vector<std::vector<std::vector<Place>>> layouts_;
};

// The options of a device, the one that serves nothing first. A device with a busy instance gives
// its idle instances as they are; its layout does not change.
[[nodiscard]] std::vector<Option> options_of(const Device& device, const Demand& demand,
                                             const LayoutBook& book);

// The instances of the device that must go so that these places can be there.
[[nodiscard]] std::vector<Place> in_the_way(const Device& device, std::span<const Place> places);

}  // namespace neap::mig
