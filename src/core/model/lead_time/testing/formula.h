// The formulas of POLICIES section 2 as they are written there, over whole sequences: the oracle
// of the stream. It shares nothing with the rule but the types of its input.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/lead_time/guard.h"

namespace neap::lead_time::testing {

using Demand = std::vector<std::optional<std::int64_t>>;

// A mistake to plant, each of which a property has to notice.
enum class Mistake : std::uint8_t {
  none,
  truncates,         // C++ division where it should go down
  learns_too_early,  // hour h - 1 is learned from already
  raises_at_once,    // no lead
  forgets_unknown    // an unknown slot is a demand of nothing
};

// C of every slot; that of slot s from the demand before s alone.
[[nodiscard]] std::vector<std::int64_t> guards_by_formula(const GuardSpec& spec,
                                                          const Demand& demand,
                                                          Mistake mistake = Mistake::none);

}  // namespace neap::lead_time::testing
