// Random sequences of records that a pool could have journalled: placements that fit, reports of
// allocations that live, in every order that the contract allows and some that it does not.
#pragma once

#include <cstdint>

#include "ledger/testing/second_reducer.h"

namespace neap::ledger::testing {

[[nodiscard]] Journal random_journal(std::uint64_t seed, int records);

}  // namespace neap::ledger::testing
