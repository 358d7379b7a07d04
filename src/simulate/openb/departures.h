// The published experiment with what it lacks: pods depart, and those that find no place wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "simulate/openb/policy.h"
#include "simulate/openb/workload.h"

namespace neap::simulate {

enum class Lifetimes : std::uint8_t {
  exponential,  // of one mean length, whatever the pod
  recorded,     // that of the trace's pod, scaled to the same mean
};

// Time is in mean lifetimes: the arrivals that offer a load depend on it, nothing else does.
struct Coming {
  std::uint32_t row = 0;  // of the pod file
  double at = 0;
  double length = 0;
};

enum class Start : std::uint8_t {
  empty,
  // With as many pods, and as old, as there are in the long run: recorded lengths differ so much
  // that an empty cluster would take for ever to fill.
  balanced,
};

struct ComingOptions {
  double load = 0.95;     // device time asked for, of what the cluster has
  double lifetimes = 10;  // so long do pods arrive
  Lifetimes kind = Lifetimes::exponential;
  Start start = Start::empty;
  std::uint64_t seed = 1;
};

// Pods drawn at random out of the workload's, at random times. `recorded` holds a length for every
// pod of the file; it may be empty for exponential ones.
[[nodiscard]] std::vector<Coming> draw_comings(const Workload& workload,
                                               const std::vector<double>& recorded,
                                               ComingOptions options);

// How long a pod that runs will still run on average, in percent of a mean lifetime: 100 where
// lifetimes are exponential, more where a few last long.
[[nodiscard]] std::int32_t residual_percent_of(const std::vector<double>& recorded);

struct WaitingOutcome {
  double mean_wait = 0;  // of pods that came after the warm-up, in mean lifetimes
  double waited = 0;     // part of them that waited at all
  double p99_wait = 0;
  double allocated = 0;           // part of the cluster, mean over time after the warm-up
  double fragmented = 0;          // likewise
  std::int64_t never_placed = 0;  // though everything had departed: larger than any node
};

// Told of every node that has changed, and when.
using Observer = std::function<void(double now, const Cluster& cluster, std::uint32_t node)>;

// In the order of arrival, but a pod that fits goes ahead of one that does not. One that is asked
// to stop does so between two events; what it gives then is of no use.
[[nodiscard]] WaitingOutcome run_with_departures(const Workload& workload,
                                                 const std::vector<Coming>& comings, double warm_up,
                                                 Cluster& cluster, Policy& policy,
                                                 const Observer& observer = {},
                                                 const std::stop_token& stop = {});

}  // namespace neap::simulate
