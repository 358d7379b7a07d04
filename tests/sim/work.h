// The pools and the work that seeds are made of.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "backend/simulated/random.h"
#include "tests/sim/site.h"

namespace neap::sim {

struct Work {
  PoolSpec pool;
  std::vector<NodeSpec> nodes;
  std::vector<std::pair<Time, TaskSpec>> tasks;
  std::vector<std::tuple<Time, ServiceSpec, Load>> services;
  Time horizon;
};

[[nodiscard]] Work any_work(simulated::Random& random);

// The tiers of the field example, and one for interactive training.
[[nodiscard]] std::vector<TierSpec> field_tiers();

}  // namespace neap::sim
