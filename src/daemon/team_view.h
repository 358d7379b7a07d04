// What each team has against what it is guaranteed and may have (D6), for the API.
#pragma once

#include <vector>

#include "api/view.h"
#include "core/model/state.h"

namespace neap {

// Parents before children; teams that no file names are there once they have tasks. Without
// `teams:` in the pool's file all of them are such.
[[nodiscard]] std::vector<api::TeamRow> view_teams(const PoolState& state);

}  // namespace neap
