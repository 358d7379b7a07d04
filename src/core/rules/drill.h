// What a drill does next, and its verdict (SPEC F12): each limit with what was seen of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/state.h"

namespace neap {

// The next decision of the drill that is under way, if it is due.
[[nodiscard]] std::optional<Decision> drill_step(const PoolState& state, Time now);

struct DrillCheck {
  std::string name;    // "lost work"
  std::string figure;  // "0 s"
  std::string limit;   // "at most 0 s"
  bool kept = false;   // as things stand
  bool open = false;   // that may still change: it is under way, and the limit can be kept
};
// Of the drill that is under way, as it stands, or of the last one.
[[nodiscard]] std::vector<DrillCheck> drill_checks(const DrillState& drill);
// Tasks that were asked and not told to stay; what they lost so far.
[[nodiscard]] std::int32_t drill_preemptions(const DrillState& drill);
[[nodiscard]] Micros drill_lost(const DrillState& drill);

// The smallest number of replicas of a service: its own, or what a drill asks for.
[[nodiscard]] std::int32_t least_replicas(const PoolState& state, const ServiceState& service);
// How many replicas stay when a drill of this service is over: what it had before it, or what its
// load needs. Without a drill, no limit.
[[nodiscard]] std::int32_t replicas_after_drill(const PoolState& state, const ServiceState& service,
                                                Time now);

[[nodiscard]] std::string_view name_of(RoomSource source);
[[nodiscard]] std::string_view name_of(DrillPhase phase);

}  // namespace neap
