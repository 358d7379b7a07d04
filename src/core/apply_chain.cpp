#include "core/apply_chain.h"

#include <algorithm>
#include <utility>

#include "core/apply_parts.h"
#include "core/model/check.h"
#include "core/model/codec.h"
#include "core/rules/chain.h"
#include "core/rules/scale.h"

namespace neap {

namespace {

PipelineState& pipeline_at(PoolState& state, PipelineId id) {
  const auto found =
      std::lower_bound(state.pipelines.begin(), state.pipelines.end(), id,
                       [](const PipelineState& pipeline, PipelineId i) { return pipeline.id < i; });
  NEAP_CHECK(found != state.pipelines.end() && found->id == id);
  return *found;
}

StageState& stage_to_change(PipelineState& pipeline, std::int32_t stage) {
  return pipeline.stages.at(static_cast<std::size_t>(stage));
}

void change_stage(PoolState& state, StageState& stage, StagePhase phase) {
  stage.phase = phase;
  stage.since = state.now;
}

bool is_live(const PipelineState& pipeline) { return pipeline.ended == Time::never(); }

// "7/train": directories are told apart by the pipeline's number, as names are used again.
std::string directory_of(PipelineId pipeline, const std::string& stage) {
  return std::to_string(pipeline.value) + "/" + stage;
}

Artifacts artifacts_of(const PipelineSpec& spec, PipelineId id, const StageSpec& stage) {
  Artifacts artifacts;
  if (stage.task) artifacts.own = directory_of(id, stage.name);
  for (const std::int32_t before : stage.after) {
    const std::string& name = spec.stages[static_cast<std::size_t>(before)].name;
    artifacts.inputs.push_back({name, directory_of(id, name)});
  }
  return artifacts;
}

void forget_old_pipelines(PoolState& state) {
  const auto ended = static_cast<std::size_t>(
      std::count_if(state.pipelines.begin(), state.pipelines.end(),
                    [](const PipelineState& pipeline) { return !is_live(pipeline); }));
  if (ended <= ended_pipelines_kept) return;
  const auto oldest =
      std::find_if(state.pipelines.begin(), state.pipelines.end(),
                   [](const PipelineState& pipeline) { return !is_live(pipeline); });
  state.pipelines.erase(oldest);
}

TaskId add_stage_task(PoolState& state, TaskSpec spec, PipelineId pipeline, std::int32_t stage) {
  const auto tier = find_tier(state.spec, spec.tier);
  NEAP_CHECK(tier.has_value());
  TaskState& task = add_task(state, std::move(spec), *tier);
  task.pipeline = pipeline;
  task.stage = stage;
  task.awaits_stages = true;
  state.index->agenda.admit.insert(task.id);
  return task.id;
}

// A stage may have waited for a service to be there, or to be gone.
void look_at_pipelines(PoolState& state) {
  for (const PipelineState& pipeline : state.pipelines) {
    if (is_live(pipeline)) state.index->agenda.pipelines.insert(pipeline.id);
  }
}

// A service that never served is of no use to anybody; a version that is not there yet neither.
void withdraw_deployment(PoolState& state, const StageState& stage) {
  ServiceState& service = state.services[stage.service.value];
  if (service.removed) return;
  const bool serves = std::any_of(service.replicas.begin(), service.replicas.end(),
                                  [&](TaskId id) { return state.tasks.at(id).ready; });
  if (service.roll && service.roll->phase == RollPhase::forward) {
    service.roll->fault = stage.detail;
  } else if (service.newest_version == 0 && !serves) {
    service.removed = true;
    state.index->service_names.erase(service.spec.name);
    look_at_pipelines(state);
  }
  state.index->agenda.services.insert(service.id.value);
}

}  // namespace

// ---- pipelines -------------------------------------------------------------------------------

void submit_pipeline(PoolState& state, const PipelineSpec& spec) {
  PipelineState pipeline;
  pipeline.id = PipelineId(state.next_pipeline++);
  pipeline.name = spec.name;
  pipeline.team = spec.team;
  pipeline.owner = spec.owner;
  pipeline.submitted = state.now;
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const StageSpec& from = spec.stages[i];
    StageState& stage = pipeline.stages.emplace_back();
    stage.name = from.name;
    stage.after = from.after;
    stage.when = from.when;
    stage.since = state.now;
    const std::string& tier = from.task ? from.task->tier : from.service->tier;
    pipeline.group = std::min(pipeline.group, *find_tier(state.spec, tier));
    if (from.task) {
      TaskSpec task = *from.task;
      task.artifacts = artifacts_of(spec, pipeline.id, from);
      stage.task =
          add_stage_task(state, std::move(task), pipeline.id, static_cast<std::int32_t>(i));
    } else {
      stage.deploys = from.service;
      stage.deploys->artifacts = artifacts_of(spec, pipeline.id, from);
    }
  }
  state.index->agenda.pipelines.insert(pipeline.id);
  state.pipelines.push_back(std::move(pipeline));
}

// What runs is asked to stop here; what waits is ended by decisions.
void cancel_pipeline(PoolState& state, const PipelineCancelRequested& asked) {
  const PipelineState* found = find_pipeline(state, asked.name);
  NEAP_CHECK(found != nullptr && is_live(*found));
  PipelineState& pipeline = pipeline_at(state, found->id);
  pipeline.cancelled_by = asked.by;
  state.index->agenda.pipelines.insert(pipeline.id);
  for (const StageState& stage : pipeline.stages) {
    TaskState* task = stage.task.valid() ? state.tasks.find(stage.task) : nullptr;
    if (task == nullptr || !holds_devices(task->phase)) continue;
    task->stop_reason = StopReason::cancelled;
    state.index->agenda.attention.insert(task->id);
  }
}

void take_metrics(PoolState& state, const MetricsRead& read) {
  StageState& stage = stage_to_change(pipeline_at(state, read.pipeline), read.stage);
  stage.metrics = read.values;
  stage.fault = read.fault;
  if (stage.metrics.empty() && stage.fault.empty()) stage.fault = "its metrics.json has no number";
  state.index->agenda.pipelines.insert(read.pipeline);
}

namespace {

// Stages whose version is not to be there.
void fail_deployments(PoolState& state, ServiceId service, const std::string& why) {
  for (PipelineState& pipeline : state.pipelines) {
    if (!is_live(pipeline)) continue;
    for (StageState& stage : pipeline.stages) {
      const bool deploys = stage.phase == StagePhase::running && stage.service == service;
      if (!deploys || !stage.fault.empty()) continue;
      stage.fault = why;
      state.index->agenda.pipelines.insert(pipeline.id);
    }
  }
}

}  // namespace

void enter_stage(PoolState& state, const StageEntered& entered) {
  PipelineState& pipeline = pipeline_at(state, entered.pipeline);
  StageState& stage = stage_to_change(pipeline, entered.stage);
  change_stage(state, stage, StagePhase::running);
  if (entered.task.valid()) {
    TaskState& task = state.tasks.at(entered.task);
    task.awaits_stages = false;
    task.submitted = task.phase_since = state.now;  // until now there was nothing to wait for
    set_due(state, task);
    refresh_queue(state, task);
    return;
  }
  fail_deployments(state, entered.service, "pipeline " + pipeline.name + " deployed another after");
  stage.service = entered.service;
  const ServiceSpec spec = *std::exchange(stage.deploys, std::nullopt);
  if (entered.service.value < state.services.size()) {
    begin_version(state, state.services[entered.service.value], spec);
  } else {
    add_service(state, spec);
  }
}

void end_stage(PoolState& state, const StageEnded& ended) {
  PipelineState& pipeline = pipeline_at(state, ended.pipeline);
  StageState& stage = stage_to_change(pipeline, ended.stage);
  change_stage(state, stage, ended.outcome);
  stage.detail = ended.why;
  if (stage.deploys) {  // of what never came the name is left
    ServiceSpec named;
    named.name = std::move(stage.deploys->name);
    stage.deploys = std::move(named);
  }
  TaskState* task = stage.task.valid() ? state.tasks.find(stage.task) : nullptr;
  if (task != nullptr && task->phase == Phase::waiting) {
    task->detail = ended.why;
    change_phase(state, *task, Phase::cancelled);
  }
  if (stage.service.valid() && ended.outcome != StagePhase::done) withdraw_deployment(state, stage);
  const bool all = std::all_of(pipeline.stages.begin(), pipeline.stages.end(),
                               [](const StageState& s) { return has_ended(s.phase); });
  if (!all) return;
  pipeline.ended = state.now;
  forget_old_pipelines(state);
}

void note_chain_begun(PoolState& state, const TaskState& task) {
  if (!task.pipeline.valid()) return;
  PipelineState& pipeline = pipeline_at(state, task.pipeline);
  if (pipeline.begun == Time::never()) pipeline.begun = state.now;
}

void note_stage_ended(PoolState& state, const TaskState& task) {
  if (!task.pipeline.valid() || find_pipeline(state, task.pipeline) == nullptr) return;
  PipelineState& pipeline = pipeline_at(state, task.pipeline);
  StageState& stage = stage_to_change(pipeline, task.stage);
  const bool reads = stage.phase == StagePhase::running && task.phase == Phase::finished &&
                     metrics_are_asked(pipeline, task.stage);
  if (reads) change_stage(state, stage, StagePhase::reading);
  if (is_live(pipeline)) state.index->agenda.pipelines.insert(pipeline.id);
}

// ---- services --------------------------------------------------------------------------------

ServiceState& add_service(PoolState& state, const ServiceSpec& spec) {
  ServiceState& service = state.services.emplace_back();
  service.id = ServiceId(static_cast<std::uint32_t>(state.services.size() - 1));
  service.spec = spec;
  service.tier = *find_tier(state.spec, spec.tier);
  state.index->service_names[spec.name] = service.id;
  state.index->agenda.services.insert(service.id.value);
  return service;
}

namespace {
void forget_load(ServiceState& service) {
  service.above_since = service.below_since = service.idle_since = Time::never();
  service.needed_while_low = 0;
}
}  // namespace

void begin_version(PoolState& state, ServiceState& service, const ServiceSpec& spec) {
  service.rolled_back.clear();
  state.index->agenda.services.insert(service.id.value);
  const std::int32_t staying = staying_replicas(state, service);
  Roll roll{service.spec, service.version, state.now, staying, RollPhase::forward, {}};
  if (service.roll) {  // what is given up is the last version that served, not one half loaded
    roll.wanted = service.roll->wanted;
    if (service.roll->phase == RollPhase::forward) {
      roll.before = std::move(service.roll->before);
      roll.from = service.roll->from;
    }
  }
  service.spec = spec;
  service.tier = *find_tier(state.spec, spec.tier);
  service.version = ++service.newest_version;
  service.failures = 0;
  forget_load(service);
  service.roll = std::move(roll);
}

namespace {

// Whether what is asked for is what served before the version that is being loaded.
bool is_version_before(const ServiceState& service, const ServiceSpec& spec) {
  if (!service.roll || service.roll->phase != RollPhase::forward) return false;
  return encode(ServiceReplaced{service.roll->before, {}}) == encode(ServiceReplaced{spec, {}});
}

}  // namespace

void replace_version(PoolState& state, ServiceState& service, const ServiceReplaced& asked) {
  if (is_version_before(service, asked.spec)) {
    return settle_roll(state, {service.id, RollOutcome::rolled_back, asked.by + " took it back"});
  }
  fail_deployments(state, service.id, "another version, submitted by " + asked.by + ", came after");
  begin_version(state, service, asked.spec);
}

void settle_roll(PoolState& state, const ServiceRolled& rolled) {
  ServiceState& service = state.services[rolled.service.value];
  NEAP_CHECK(service.roll.has_value());
  Roll& roll = *service.roll;
  if (rolled.outcome == RollOutcome::done) {
    service.roll.reset();
  } else {
    service.rolled_back = rolled.why;
    service.spec = std::exchange(roll.before, {});
    service.tier = *find_tier(state.spec, service.spec.tier);
    service.version = roll.from;
    service.failures = 0;
    roll.phase = RollPhase::back;
    roll.fault.clear();
  }
  forget_load(service);
  state.index->agenda.services.insert(service.id.value);
  look_at_pipelines(state);
}

void note_service_changed(PoolState& state, ServiceId service) {
  if (state.services[service.value].removed) return look_at_pipelines(state);
  for (const PipelineState& pipeline : state.pipelines) {
    if (!is_live(pipeline)) continue;
    const bool deploys = std::any_of(
        pipeline.stages.begin(), pipeline.stages.end(),
        [&](const StageState& s) { return s.service == service && !has_ended(s.phase); });
    if (deploys) state.index->agenda.pipelines.insert(pipeline.id);
  }
  if (state.services[service.value].roll) state.index->agenda.services.insert(service.value);
}

void note_replica_failed(PoolState& state, const TaskState& replica, const std::string& why) {
  if (!replica.service.valid()) return;
  ServiceState& service = state.services[replica.service.value];
  if (!service.roll || service.roll->phase != RollPhase::forward) return;
  if (replica.version != service.version || !service.roll->fault.empty()) return;
  service.roll->fault = replica.spec.name + " " + why;
  state.index->agenda.services.insert(service.id.value);
}

}  // namespace neap
