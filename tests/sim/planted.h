// Bugs planted in the engine or in the loop, to see that the invariants are worth something.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/sim/weather.h"

namespace neap::sim {

struct NamedBug {
  std::string name;
  std::string noticed;  // part of the violation that must come first
  Planted planted;
};

inline void PrintTo(const NamedBug& bug, std::ostream* out) { *out << bug.name; }

[[nodiscard]] std::vector<NamedBug> planted_bugs();

}  // namespace neap::sim
