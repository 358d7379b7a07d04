// The list `teams` of a pool file.
#pragma once

#include <cstdint>

#include "config/fields.h"
#include "core/model/spec.h"

namespace neap::config {

inline constexpr std::int64_t devices_max = 200'000;  // of a pool

// Into `pool.teams`, sorted by name. Last of what is read of a pool: guarantees are held against
// its devices.
void read_teams(Fields& top, PoolSpec& pool);

}  // namespace neap::config
