// Records in words, for `neap events`, trails and the daemon's log.
#pragma once

#include <string>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap::daemon {

struct Narration {
  std::string kind;             // stable: "task_submitted", "task_placed"
  std::string subject;          // task, service, device or node; empty for the pool
  std::uint32_t owner_uid = 0;  // root where the owner is no longer known: administrators see it
  TaskId task;                  // none when it is not about one task
  bool about_pool = false;      // of interest to everybody, and nobody's own
  std::string message;
};
// `at` is the record's own time; the state may be later.
[[nodiscard]] Narration narrate(const PoolState& state, Time at, const Event& event,
                                TaskId reporter);
[[nodiscard]] Narration narrate(const PoolState& state, Time at, const Decision& decision);

// "node1: gpu 0, 1", empty without devices.
[[nodiscard]] std::string place_text(const PoolState& state, const std::vector<Slot>& slots);

}  // namespace neap::daemon
