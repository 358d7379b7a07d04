// Reports and drills as the API shows them.
#pragma once

#include <vector>

#include "api/reports.h"
#include "core/model/state.h"
#include "ledger/checkpoints.h"

namespace neap::daemon {

[[nodiscard]] api::DrillReport view_drill(const PoolState& state);
[[nodiscard]] DrillStarted drill_of(const api::DrillOrder& order, const std::string& by);
// The checkpoint contract of a training task as it is kept, beside what it declares (D12).
[[nodiscard]] std::vector<api::Attribute> view_checkpoints(const PoolState& state,
                                                           const TaskState& task,
                                                           const ledger::CheckpointsSeen* seen);

}  // namespace neap::daemon
