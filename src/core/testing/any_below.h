// What properties draw from the generator of the case that runs.
#pragma once

#include <rapidcheck.h>

namespace neap::testing {

// The size is fixed: the ranges of rapidcheck shrink with it, down to nothing.
[[nodiscard]] inline int any_below(int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int>(0, end));
}

[[nodiscard]] inline bool one_in(int n) { return any_below(n) == 0; }

}  // namespace neap::testing
