// What a submitted file leaves open, from the profile of its type (SPEC A3).
#pragma once

#include "config/task_file.h"
#include "core/model/state.h"

namespace neap::daemon {

// Errors name the field, as config::fit_to_pool.
[[nodiscard]] Result<void> fit_to_profile(const PoolState& state, config::TaskFile& file);

}  // namespace neap::daemon
