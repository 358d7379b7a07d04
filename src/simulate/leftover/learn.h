// Learns the table from pods drawn out of a workload's own, never from the order of a run.
#pragma once

#include <cstdint>
#include <stop_token>

#include "core/rules/place/leftover_table.h"
#include "simulate/openb/workload.h"

namespace neap::simulate {

struct LearnOptions {
  int iterations = 10;
  int streams = 8;  // of each iteration
  int judged = 5;   // so many of the last tables are compared
  int judging = 8;  // streams, the same for each of them
  std::uint64_t seed = 1;
};

[[nodiscard]] leftover::LeftoverTable learn_leftover(const Workload& workload,
                                                     LearnOptions options = {});

struct LearnLastingOptions {
  int iterations = 4;
  double load = 1.1;     // more than the cluster holds: what is free then is free for a reason
  double horizon = 0.1;  // mean lifetimes over which a free part is watched
  double lifetimes = 4;  // of each iteration, after the first of them
  std::uint64_t seed = 1;
  std::stop_token stop;  // asked to stop, it soon returns a table that is of no use
};

// For a cluster where pods come and go: how much of a free part stays free for a while.
[[nodiscard]] leftover::LeftoverTable learn_lasting(const Workload& workload,
                                                    LearnLastingOptions options = {});

}  // namespace neap::simulate
