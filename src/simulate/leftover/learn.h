// Learns the table from pods drawn out of a workload's own, never from the order of a run.
#pragma once

#include <cstdint>

#include "simulate/leftover/table.h"
#include "simulate/openb/workload.h"

namespace neap::simulate {

struct LearnOptions {
  int iterations = 10;
  int streams = 8;  // of each iteration
  int judged = 5;   // so many of the last tables are compared
  int judging = 8;  // streams, the same for each of them
  std::uint64_t seed = 1;
};

[[nodiscard]] LeftoverTable learn_leftover(const Workload& workload, LearnOptions options = {});

}  // namespace neap::simulate
