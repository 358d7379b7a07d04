// What the pool is asked for, by kind, and what placement makes of it. Kept by apply; part of the
// state, so that a replay places as the pool did.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "core/model/units.h"

namespace neap {

// Tasks that ask for the same. Memory is rounded up to a few steps in each doubling: kinds that
// differ by less are placed alike.
struct DemandKind {
  std::int64_t cpu_milli = 0;
  std::int32_t count = 0;  // devices
  MilliGpu share{0};       // of each
  MiB memory{0};           // of each
  std::vector<std::string> models;
  auto operator<=>(const DemandKind&) const = default;
};

struct DemandCount {
  DemandKind kind;
  std::int64_t tasks = 0;
};

// Tasks that were admitted, by kind. Older ones count less: all counts are halved now and then.
struct DemandBook {
  std::vector<DemandCount> kinds;  // sorted by kind
  std::int64_t seen = 0;           // in all
};

inline constexpr std::size_t most_demand_kinds = 512;
inline constexpr std::int64_t most_demand_tasks = 16'384;  // more are halved

void note_demand(DemandBook& book, const Request& request);

// What placement reckons with: the demand as it was when this was made, and a table of expected
// leftovers that was learned from it (rules/place/leftover_table.h), row by row. Without one
// the rule of rules/place/fragment.h holds.
struct PlacementBasis {
  std::uint32_t version = 0;
  std::int64_t seen = 0;  // of DemandBook, then
  std::vector<DemandCount> kinds;
  std::vector<std::int32_t> table;
};

// A table is learned from this much demand, and anew whenever there is twice as much, or this
// much more.
inline constexpr std::int64_t demand_to_learn_from = 1'000;
inline constexpr std::int64_t demand_to_learn_again = 16'000;

}  // namespace neap
