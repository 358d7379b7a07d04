// When a tenant leaves by itself, and how it would leave if it were asked to go on elsewhere.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/model/state.h"
#include "core/rules/preempt.h"

namespace neap {

struct Departure {
  Time end = Time::never();    // by itself; never: not known
  std::optional<Offer> move;   // what it offers if it is asked now (boundary or on demand)
  Time later = Time::never();  // gone by then, if it is asked as soon as that is allowed
  [[nodiscard]] Time gone() const { return std::min(end, move ? move->release_by : later); }
};

// Batch tasks alone are moved, outside all protection (POLICIES 1), after the cooldown, and only
// with more work left than a restart takes.
[[nodiscard]] Departure departure_of(const PoolState& state, const TaskState& task, Time now);

// Where a task that runs could go on.
struct Elsewhere {
  NodeId not_on;                      // none: any node will do
  std::vector<DeviceId> not_devices;  // sorted
  // Spoken for by tasks that go on there too, beside what the state knows.
  std::vector<std::pair<TaskId, std::vector<Slot>>> taken;
  // Whether it may break into what is free as a whole: a device for shares, a node for devices.
  enum class Fresh : std::uint8_t { allowed, spared } fresh = Fresh::allowed;
};
// The fullest place that the index knows; empty: none was found within a bound on what is asked.
// Tasks that span nodes have none.
[[nodiscard]] std::vector<Slot> destination_of(const PoolState& state, const TaskState& task,
                                               const Elsewhere& where);

}  // namespace neap
