// The list `teams` of a pool file.
#pragma once

#include "config/fields.h"
#include "core/model/spec.h"

namespace neap::config {

// Into `pool.teams`, sorted by name. Last of what is read of a pool: guarantees are held against
// its devices.
void read_teams(Fields& top, PoolSpec& pool);

}  // namespace neap::config
