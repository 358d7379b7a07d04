// What the records of pipelines and of versions of services do to the state. For apply_*.cpp alone.
#pragma once

#include <string>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

// Pipelines that have ended are kept for questions; older ones are forgotten (the journal has
// them).
inline constexpr std::size_t ended_pipelines_kept = 1'000;

void submit_pipeline(PoolState& state, const PipelineSpec& spec);
void cancel_pipeline(PoolState& state, const PipelineCancelRequested& asked);
void take_metrics(PoolState& state, const MetricsRead& read);
void enter_stage(PoolState& state, const StageEntered& entered);
void end_stage(PoolState& state, const StageEnded& ended);

ServiceState& add_service(PoolState& state, const ServiceSpec& spec);
void begin_version(PoolState& state, ServiceState& service, const ServiceSpec& spec);
// As begin_version(); what served before the version that is being loaded gives that one up.
void replace_version(PoolState& state, ServiceState& service, const ServiceReplaced& asked);
void settle_roll(PoolState& state, const ServiceRolled& rolled);

// A task was placed, or ended: its pipeline takes notice.
void note_chain_begun(PoolState& state, const TaskState& task);
void note_stage_ended(PoolState& state, const TaskState& task);
// What was told of a service may concern the stage that deploys it.
void note_service_changed(PoolState& state, ServiceId service);
// A replica of a new version did not become healthy, or ended by itself: that version is given up.
void note_replica_failed(PoolState& state, const TaskState& replica, const std::string& why);

}  // namespace neap
