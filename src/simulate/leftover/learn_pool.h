// Learns a pool's table of expected leftovers from what it has been asked for. Takes seconds: on a
// thread beside the loop, or between two events of a simulation.
#pragma once

#include <optional>
#include <stop_token>

#include "core/model/events.h"
#include "core/model/state.h"
#include "simulate/openb/workload.h"

namespace neap::simulate {

// What there is to learn from; small, whatever the size of the pool.
struct Lesson {
  std::int64_t seen = 0;
  std::vector<DemandCount> kinds;
  Workload workload;
};

// Nothing when the pool has no devices that scores can tell apart.
[[nodiscard]] std::optional<Lesson> lesson_of(const PoolState& state);

// The same lesson gives the same table; nothing when it was asked to stop.
[[nodiscard]] std::optional<PlacementLearned> learn(const Lesson& lesson,
                                                    const std::stop_token& stop = {});

}  // namespace neap::simulate
