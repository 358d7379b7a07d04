// Pipelines: which stage enters or ends next, and what it means that the stages of one are one
// priority group (SPEC D9, S8; docs/decisions/0019):
//
//   order      a stage with stages before it, or one that ran before, is due since the pipeline
//              was submitted: it goes before all of its tier but those who were due by then
//   turn       once the pipeline has begun, and for chain_protect from when a stage entered and
//              again from when it first started, its turn comes with the heaviest tier of the
//              pipeline's stages, so that nobody of that tier takes what the stage before it has
//              just left
//   protection for the same time, and on devices that are not lent, nobody takes its devices who
//              has not more weight than that tier; asking others to yield it counts with its own
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

// Since when a task is due as a later stage of a pipeline, or as a replica that such a stage
// deploys; nothing for all others.
[[nodiscard]] std::optional<Time> due_in_chain(const PoolState& state, const TaskState& task);
// Whether its pipeline has begun, and this stage has for less than chain_protect: others take its
// devices if they have more weight than the pipeline, for no other reason.
[[nodiscard]] bool chain_protects(const PoolState& state, const TaskState& task);
// The tier with which its turn comes in the queue.
[[nodiscard]] TierId turn_in_chain(const PoolState& state, const TaskState& task);
// Of the heaviest tier of its pipeline's stages while that protects, else of its own tier.
[[nodiscard]] std::int32_t weight_in_chain(const PoolState& state, const TaskState& task);
// Whether its pipeline would give it more weight than its tier once it has begun: such a task is
// not placed where others may ask for the devices at any time.
[[nodiscard]] bool is_carried_by_chain(const PoolState& state, const TaskState& task);

// What happens next in this pipeline: a stage enters or ends. Nothing: it waits for tasks,
// services or metrics.
[[nodiscard]] std::optional<Decision> next_step(const PoolState& state,
                                                const PipelineState& pipeline);
// Whether a later stage looks at the metrics of this one.
[[nodiscard]] bool metrics_are_asked(const PipelineState& pipeline, std::int32_t stage);

// "waits for stage evaluate of pipeline nightly (running)"; for tasks that wait for stages.
[[nodiscard]] std::string stages_text(const PoolState& state, const TaskState& task);
// 900'000 is "0.9".
[[nodiscard]] std::string metric_text(std::int64_t millionths);

}  // namespace neap
