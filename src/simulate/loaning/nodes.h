// Free devices by node, with the rule by which jobs of the lending experiment are placed: up to
// eight devices on one node, best fit; more as whole nodes and a remainder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "simulate/loaning/workload.h"

namespace neap::loaning {

struct Part {
  std::int32_t node = 0;
  std::int32_t devices = 0;
};

// Which nodes training takes first: those that inference never uses, or any.
enum class PlaceOrder : std::uint8_t { core_first, anywhere };

// Gangs of more than a node: whole nodes and a remainder, or, where that is not to be had, whatever
// is free, as neap's engine does.
enum class Gangs : std::uint8_t { whole_nodes, uneven };

struct PlaceRule {
  PlaceOrder order = PlaceOrder::core_first;
  Gangs gangs = Gangs::whole_nodes;
};

class Nodes {
 public:
  // The last node has what is left; the last ones, enough for `region` devices, may be lent.
  struct Size {
    std::int32_t devices = 0, region = 0;
  };
  Nodes(Size size, PlaceRule rule);

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(free_.size()); }
  [[nodiscard]] std::int32_t first_lendable() const { return first_lendable_; }
  [[nodiscard]] const std::vector<std::int32_t>& free() const { return free_; }
  [[nodiscard]] std::int32_t free_in_all() const { return free_in_all_; }

  void take(Part part) { change(part.node, -part.devices); }
  void give(Part part) { change(part.node, part.devices); }
  // Empty where it does not fit. Nothing is taken.
  [[nodiscard]] std::vector<Part> find(std::int32_t devices) const;
  // The same where node i has `free[i]`.
  [[nodiscard]] std::vector<Part> find_in(const std::vector<std::int32_t>& free,
                                          std::int32_t devices) const;

 private:
  void change(std::int32_t node, std::int32_t by);
  [[nodiscard]] std::vector<Part> find_even(std::int32_t devices) const;
  [[nodiscard]] std::vector<Part> find_uneven(std::int32_t devices) const;
  [[nodiscard]] std::size_t zone_of(std::int32_t node) const {
    return rule_.order == PlaceOrder::core_first && node >= first_lendable_ ? 1 : 0;
  }

  PlaceRule rule_;
  std::int32_t first_lendable_ = 0;
  std::int32_t free_in_all_ = 0;
  std::vector<std::int32_t> free_;
  // Nodes by zone and by free devices.
  std::array<std::array<std::set<std::int32_t>, devices_per_node + 1>, 2> by_free_;
};

}  // namespace neap::loaning
