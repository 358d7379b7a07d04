// An adversarial pool in virtual time (D6, POLICIES 4): high tiers hold all but the lane, and send
// what their envelope allows at the worst moments; the engine is stopped and restored on the way;
// some tasks do not heed what they are asked. Every start that was promised is held against its
// promise. No backend of the product is needed: tasks here do what contracts say, and no more.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/units.h"

namespace neap::testing {

// What arrives beside single devices.
enum class Shapes : std::uint8_t { singles, gangs, parts, shares, mixed };
// A bug that the contest has to see: forced tasks start in the lane past the first of them that
// finds no room.
enum class Planted : std::uint8_t { none, backfill };

struct ContestPlan {
  std::uint64_t seed = 1;
  Micros lasts = hours(24 * 14);
  int nodes = 8, devices_per_node = 4;
  int lane = 8;             // devices
  int normal_per_day = 40;  // tasks of the tier that starves
  int urgent_burst = 2;     // the envelope of the tier that passes it
  int urgent_per_hour = 1;
  int unruly_percent = 5;  // ignore yields and SIGTERM
  Shapes shapes = Shapes::mixed;
  Planted planted = Planted::none;
};

struct ContestResult {
  std::int64_t submitted = 0, promised = 0, kept = 0, late = 0, withdrawn = 0;
  std::int64_t unpromised = 0;      // batch tasks that were told that there is no promise
  std::int64_t urgent_refused = 0;  // of the tier that keeps to its envelope
  std::int64_t in_lane = 0, restarts = 0, events = 0;
  std::int64_t worst_permille = 0;  // of wait to bound
  std::string worst;
};
[[nodiscard]] ContestResult run_contest(const ContestPlan& plan);

}  // namespace neap::testing
