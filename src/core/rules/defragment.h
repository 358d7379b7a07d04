// Consolidation at low tide (C5, D8, POLICIES 5): tasks are moved at their boundaries, so that a
// device or a node becomes free as a whole. docs/decisions/0011 has the formula.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/state.h"
#include "core/rules/preempt.h"

namespace neap {

struct Move {
  TaskId task;
  std::vector<Slot> to;
  Offer offer;
};

// A cell, and where everybody who holds a part of it would go on.
struct Consolidation {
  NodeId node;
  std::vector<DeviceId> devices;  // that become free; one, or all of the node that were not
  std::vector<Move> moves;
  std::int64_t cost = 0;  // milli-GPU·µs
  Time stuck_until;       // until then the cell would not be free by itself; never: not known
};

// Nothing: somebody there may not be moved now, or has no other place; or there is nobody. The
// places are free beside each other, and none breaks into what is free as a whole.
[[nodiscard]] std::optional<Consolidation> consolidate_device(const PoolState& state,
                                                              DeviceId device, Time now);
[[nodiscard]] std::optional<Consolidation> consolidate_node(const PoolState& state, NodeId node,
                                                            Time now);

// What the demand of late lacks: for each number of devices on one node, how many tasks (in
// thousandths, one at most) are expected within the horizon beyond the places that are free.
struct Lack {
  std::int32_t devices = 0;
  std::int64_t tasks = 0;
};
[[nodiscard]] std::vector<Lack> lacks(const PoolState& state, Time now);

// The expected wait that it saves, times g, in milli-GPU·µs.
[[nodiscard]] std::int64_t gain_of(const PoolState& state, const Consolidation& cell,
                                   const std::vector<Lack>& lacks, Time now);
// gain > 1.5 cost.
[[nodiscard]] bool is_worth(std::int64_t gain, std::int64_t cost);

// Few arrivals, no inference that waits, nobody preempted or waited for.
[[nodiscard]] bool is_low_tide(const PoolState& state, Time now);

// The best cells worth it among so many nodes from `first` on, round the end; at most one in each
// fault domain, and none where moves are under way. Their places are free beside each other.
struct Window {
  std::uint32_t first = 0, count = 0;
};
[[nodiscard]] std::vector<Consolidation> find_consolidations(const PoolState& state, Window nodes,
                                                             Time now);

}  // namespace neap
