// What callers see of a pipeline.
#pragma once

#include <string>

#include "api/view.h"
#include "core/model/state.h"

namespace neap::daemon {

// `artifacts` is the folder of all artefacts.
[[nodiscard]] api::PipelineRow view_pipeline(const PoolState& state, const PipelineState& pipeline,
                                             const std::string& artifacts);
// Why a service is between two versions, or went back to the one before; empty when neither.
[[nodiscard]] std::string version_text(const PoolState& state, const ServiceState& service);

}  // namespace neap::daemon
