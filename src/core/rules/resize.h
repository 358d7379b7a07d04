// Tasks that run with a range of devices (Request::least): with how many they may run, who goes on
// with fewer so that others need not be preempted, and who could have more (docs/decisions/0018).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/state.h"
#include "core/rules/preempt.h"

namespace neap {

// Fewer devices than the request asks for, with which it runs as well: halves, rounded up, of all
// of them, and the least. Descending; empty where the request has no range.
[[nodiscard]] std::vector<std::int32_t> fewer_devices(const Request& request);
// The shape with so many devices and their part of the host.
[[nodiscard]] Shape with_devices(const Shape& shape, std::int32_t devices);
// With as few as it runs with.
[[nodiscard]] Shape with_least(const Shape& shape);

// One that goes on with fewer devices: on these, which it has.
struct Shrink {
  TaskId task;
  std::vector<Slot> kept;
  Offer offer;  // its cost: of the stall and the restore
};
struct Shrinks {
  std::vector<Slot> slots;  // for the demand
  std::vector<Shrink> tasks;
  std::int64_t cost = 0;
};
// The cheapest task, on the first of equal nodes, whose going on with fewer makes room for the
// demand on one node by `needed_by`; where none is enough, several of one node, less those to
// spare. Tasks of the demand's tier give as well: what they have beyond their least is no right of
// theirs. Protected ones give nothing, nor does a team give of its guarantee (rules/teams.h).
[[nodiscard]] std::optional<Shrinks> find_shrinks(const PoolState& state, const Shape& demand,
                                                  Time now, Time needed_by);

struct Growth {
  std::vector<Slot> slots;  // where it goes on, with those of its own that it keeps
  Offer offer;
};
// As many devices as are to be had, beside its own or elsewhere, if what that saves of its
// remaining work is worth more than 1.5 times the stall and the restore. Nothing while it is
// protected.
[[nodiscard]] std::optional<Growth> find_growth(const PoolState& state, const TaskState& task,
                                                Time now);

// Somebody waits for devices of a model that this task is on.
[[nodiscard]] bool others_wait_for(const PoolState& state, const TaskState& task);

}  // namespace neap
