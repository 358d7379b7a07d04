// What would start a waiting task (SPEC F6): changes that are tried on a copy of the state.
#pragma once

#include <string>
#include <vector>

#include "core/model/state.h"

namespace neap {

// A change after which the task starts. Each was tried on a copy of the state before it is named.
struct Unblock {
  enum class Kind : std::uint8_t {
    unknown,      // none of those below was enough
    in_time,      // nothing to do: at `at` at the latest
    resume_pool,  // `neap resume`
    end_tasks,    // these tasks end, finish or are cancelled
    add_devices,  // so many more devices of a model on one node
    stages,       // the stages of its pipeline that come before it are done
  };
  Kind kind = Kind::unknown;
  Time at = Time::never();
  TaskId waiting;  // what it is about; the names of others' tasks are not told to its owner
  std::vector<TaskId> tasks;
  std::int32_t devices = 0;
  std::string model;
  MiB memory{0};
};
// Copies the state: for a person's question, not for each event.
[[nodiscard]] Unblock find_unblock(const PoolState& state, TaskId task, Time now);
[[nodiscard]] std::string to_text(const PoolState& state, const Unblock& unblock);

// Applies the stated change to a state (for what-if and for tests).
void apply_unblock(PoolState& state, const Unblock& unblock, Time now);

}  // namespace neap
