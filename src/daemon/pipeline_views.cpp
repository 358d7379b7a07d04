#include "daemon/pipeline_views.h"

#include <algorithm>

#include "core/rules/chain.h"
#include "core/rules/explain.h"
#include "core/rules/roll.h"

namespace neap::daemon {

namespace {

std::string state_of(const PipelineState& pipeline) {
  const auto any = [&](StagePhase phase) {
    return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [phase](const StageState& stage) { return stage.phase == phase; });
  };
  if (pipeline.ended == Time::never()) return any(StagePhase::running) ? "running" : "waiting";
  if (any(StagePhase::failed)) return "failed";
  return any(StagePhase::stopped) ? "stopped" : "done";
}

std::string stage_reason(const PoolState& state, const PipelineState& pipeline,
                         const StageState& stage) {
  if (has_ended(stage.phase)) return stage.detail;
  if (stage.phase == StagePhase::reading) return "its metrics are being read";
  if (stage.service.valid()) return version_text(state, state.service(stage.service));
  if (stage.task.valid()) {
    const TaskState* task = state.tasks.find(stage.task);
    return task == nullptr || task->phase != Phase::waiting ? "" : explain_wait(state, *task);
  }
  std::string names;
  for (const std::int32_t n : stage.after) {
    const StageState& before = pipeline.stages[static_cast<std::size_t>(n)];
    if (before.phase != StagePhase::done) names += (names.empty() ? "" : ", ") + before.name;
  }
  return names.empty() ? "waits until another version of the service is there"
                       : "waits for stage " + names;
}

api::StageRow view_stage(const PoolState& state, const PipelineState& pipeline,
                         const StageState& stage, const std::string& artifacts) {
  api::StageRow row;
  row.name = stage.name;
  row.kind = stage.task.valid() ? "task" : "service";
  row.work = pipeline.name + "." + stage.name;
  if (stage.deploys) row.work = stage.deploys->name;
  if (stage.service.valid()) row.work = state.service(stage.service).spec.name;
  row.state = std::string(name_of(stage.phase));
  const TaskState* task = stage.task.valid() ? state.tasks.find(stage.task) : nullptr;
  const bool queues = task != nullptr && task->phase == Phase::waiting;
  if (stage.phase == StagePhase::running && queues) row.state = "waiting";
  row.reason = stage_reason(state, pipeline, stage);
  for (const std::int32_t n : stage.after) {
    row.after.push_back(pipeline.stages[static_cast<std::size_t>(n)].name);
  }
  for (const Metric& metric : stage.metrics) {
    row.metrics.push_back({metric.name, metric_text(metric.value)});
  }
  if (stage.task.valid()) {
    row.artifacts = artifacts + "/" + std::to_string(pipeline.id.value) + "/" + stage.name;
  }
  row.since_us = stage.since.us;
  return row;
}

}  // namespace

api::PipelineRow view_pipeline(const PoolState& state, const PipelineState& pipeline,
                               const std::string& artifacts) {
  api::PipelineRow row;
  row.subject = {pipeline.id.value, pipeline.name, pipeline.owner.uid};
  row.user = pipeline.owner.user;
  row.team = pipeline.team;
  row.state = state_of(pipeline);
  row.submitted_us = pipeline.submitted.us;
  if (pipeline.ended != Time::never()) row.finished_us = pipeline.ended.us;
  for (const StageState& stage : pipeline.stages) {
    row.stages.push_back(view_stage(state, pipeline, stage, artifacts));
  }
  return row;
}

std::string version_text(const PoolState& state, const ServiceState& service) {
  if (service.roll) {
    std::int32_t others = 0;
    std::string waits;
    for (const TaskId id : service.replicas) {
      const TaskState& task = state.tasks.at(id);
      if (task.version != service.version) ++others;
      if (task.version == service.version && task.phase == Phase::waiting) {
        waits = ", " + explain_wait(state, task);
      }
    }
    if (is_untried(service)) {
      return "a new version that nothing has tried: the first replica that gets healthy proves it, "
             "one that fails brings the version before back" +
             waits;
    }
    const char* what = service.roll->phase == RollPhase::back ? "goes back to the version before: "
                                                              : "loads a new version: ";
    return what + std::to_string(others) + " replicas of the other one are left" + waits;
  }
  if (service.rolled_back.empty()) return {};
  return "the last new version was given up: " + service.rolled_back;
}

}  // namespace neap::daemon
