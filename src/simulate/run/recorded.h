// A journal of neap as a workload: what was submitted, and how long it took to do.
#pragma once

#include <memory>
#include <string>

#include "core/model/result.h"
#include "core/model/spec.h"
#include "simulate/run/incoming.h"
#include "simulate/run/tiers.h"

namespace neap::whatif {

// `path` is the journal's file, or a daemon's state folder. A task's duration is the work that its
// allocations did, without what was lost or restored; of one that never finished it is what it
// declared, else what it did. Tasks of which nothing is known are passed over.
[[nodiscard]] Result<std::unique_ptr<IncomingStream>> open_journal(const std::string& path,
                                                                   const PoolSpec& pool,
                                                                   const Tiers& tiers);

}  // namespace neap::whatif
