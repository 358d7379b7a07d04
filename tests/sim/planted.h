// Bugs planted in the engine or in the loop, to see that the invariants are worth something.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/weather.h"

namespace neap::sim {

struct NamedBug {
  std::string name;
  std::string noticed;  // part of the violation that must come first
  Planted planted;
};

[[nodiscard]] std::vector<NamedBug> planted_bugs();

}  // namespace neap::sim
