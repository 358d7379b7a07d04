// What it costs to give the devices of a replica away and to take them back, as the pool saw it
// (SPEC D5; POLICIES 3; docs/decisions/0024). Kept by apply; part of the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/profile.h"
#include "core/model/units.h"

namespace neap {

// Of the replicas of one version of a service on one model of device. All in µs.
struct SwitchCost {
  std::uint32_t version = 0;
  ModelId model;
  Observed leave;    // from being asked to leave until its processes are gone: drain, teardown
  Observed load;     // from its placement until it is healthy for the first time
  Observed warm_up;  // from then until all answers of a report are within the objective
};
// The ones that were not used for longest are forgotten.
inline constexpr std::size_t switch_costs_kept = 8;

struct SwitchHour {
  std::int64_t hour = 0;   // of the epoch
  std::int64_t given = 0;  // replicas whose devices were given away in it
};
// So many hours hold every window of a day.
inline constexpr std::int64_t switch_hours_kept = 25;

// Of one service.
struct SwitchBook {
  std::vector<SwitchCost> costs;  // the newest used last
  std::vector<SwitchHour> hours;  // the newest last
  std::int64_t given = 0;         // in all
};

// What training made of devices that inference lent, by allocations that ended: milli-GPU·ms.
// Halved when much was held, so that the newest counts most.
struct LentUse {
  std::int64_t held = 0, useful = 0;
};

// A replica is warm once all answers of a report were in time.
enum class WarmUp : std::uint8_t { over, unseen, late };

}  // namespace neap
