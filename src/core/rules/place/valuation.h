// What a node's free devices are worth, and the placement that costs least of it. Integers alone.
#pragma once

#include <cstdint>

#include "core/rules/place/leftover_table.h"
#include "core/rules/place/reserve.h"
#include "core/rules/place/supply.h"

namespace neap::leftover {

struct Valuation {
  LeftoverTable table;
  Reserve reserve;
  // How much a fuller node is preferred: in thousandths of what it has free, by device.
  std::int64_t fuller = 1;
};

// Expected leftover of all devices of a node, and what large demands could not use.
[[nodiscard]] std::int64_t potential(const Valuation& valuation, const Supply& node);

struct Placement {
  std::int64_t score = 0;  // by how much the potential falls, in 1/10000 milli
  DeviceMask devices = 0;
  std::int32_t opened = 0;  // devices that were wholly free
};

// The best way to place a demand that fits there; `before` is the node's potential.
[[nodiscard]] Placement best_placement(const Valuation& valuation, const Supply& node,
                                       std::int64_t before, const Demand& demand);

}  // namespace neap::leftover
