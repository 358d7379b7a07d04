// One node as the search for victims sees it: what its devices lack for a demand, and who would
// leave them at what price.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/victim_bounds.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/preempt_cover.h"
#include "core/rules/teams.h"

namespace neap {

struct NodeProblem {
  Request request;
  NodeRoom room;
  CoverProblem cover;                // devices as in `room`, candidates as in `victims`
  std::vector<Victim> victims;       // with their offers
  std::vector<std::uint32_t> spans;  // nodes that each holds devices on
  std::vector<HostPart> host_frees;  // what each has of this node's host
};

// For victims that release by `needed_by`. `demand` names one device model.
void read_node(const PoolState& state, NodeId node, const Shape& demand, Time now, Time needed_by,
               Killing killing, NodeProblem& out);
void read_node(const PoolState& state, NodeId node, const Shape& demand, Time now, Time needed_by,
               Killing killing, const TeamRights& rights, NodeProblem& out);
// Leaves those candidates alone that are not in `keep`.
void keep_candidates(const std::vector<bool>& keep, NodeProblem& problem);

// The bound of a node (VictimBounds): no demand of this class is served there for less.
[[nodiscard]] VictimBounds::Bound measure_bound(const PoolState& state, NodeId node,
                                                const DemandClass& demand, Time now);

// The room without these tasks.
[[nodiscard]] NodeRoom room_without(const PoolState& state, NodeId node, const Shape& demand,
                                    std::span<const Victim> victims);

[[nodiscard]] std::int64_t total_cost(std::span<const Victim> victims);

}  // namespace neap
