#include "core/rules/chain.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/roll.h"

namespace neap {

namespace {

const StageState& stage_at(const PipelineState& pipeline, std::int32_t stage) {
  return pipeline.stages[static_cast<std::size_t>(stage)];
}

// Where it is remembered and lives.
const PipelineState* live_pipeline_of(const PoolState& state, const TaskState& task) {
  if (!task.pipeline.valid()) return nullptr;
  const PipelineState* pipeline = find_pipeline(state, task.pipeline);
  return pipeline != nullptr && pipeline->ended == Time::never() ? pipeline : nullptr;
}

std::string after_chain_stopped(const std::string& why) { return "chain_stopped: " + why; }

// ---- conditions ------------------------------------------------------------------------------

std::string bound_text(const StageCondition& condition) {
  return (condition.comparison == Comparison::at_least ? "at least " : "at most ") +
         metric_text(condition.bound);
}

// Why the stage does not enter; empty when all its conditions hold.
std::string broken_condition(const PipelineState& pipeline, const StageState& stage) {
  for (const StageCondition& condition : stage.when) {
    const StageState& before = stage_at(pipeline, condition.stage);
    const auto found =
        std::find_if(before.metrics.begin(), before.metrics.end(),
                     [&](const Metric& metric) { return metric.name == condition.metric; });
    if (found == before.metrics.end()) {
      const std::string why =
          before.fault.empty() ? "its metrics.json does not name it" : before.fault;
      return condition.metric + " of stage " + before.name + " is not known: " + why;
    }
    const bool holds = condition.comparison == Comparison::at_least
                           ? found->value >= condition.bound
                           : found->value <= condition.bound;
    if (!holds) {
      return condition.metric + " of stage " + before.name + " is " + metric_text(found->value) +
             ", asked for is " + bound_text(condition);
    }
  }
  return {};
}

// ---- one stage -------------------------------------------------------------------------------

class StageStep {
 public:
  StageStep(const PoolState& state, const PipelineState& pipeline, std::int32_t number)
      : state_(state),
        pipeline_(pipeline),
        number_(number),
        stage_(stage_at(pipeline, number)),
        task_(stage_.task.valid() ? state.tasks.find(stage_.task) : nullptr) {}

  [[nodiscard]] std::optional<Decision> next() const {
    switch (stage_.phase) {
      case StagePhase::waiting:
        return of_waiting();
      case StagePhase::running:
        return stage_.task.valid() ? of_task() : of_service();
      case StagePhase::reading:
        if (stage_.metrics.empty() && stage_.fault.empty() && !is_cancelled()) return std::nullopt;
        return ends(StagePhase::done);
      default:
        return std::nullopt;
    }
  }

 private:
  [[nodiscard]] bool is_cancelled() const { return !pipeline_.cancelled_by.empty(); }

  [[nodiscard]] Decision ends(StagePhase outcome, std::string why = {}) const {
    return StageEnded{pipeline_.id, number_, stage_.task, outcome, std::move(why)};
  }
  [[nodiscard]] Decision ends_cancelled() const {
    return ends(StagePhase::stopped,
                after_chain_stopped("pipeline cancelled by " + pipeline_.cancelled_by));
  }

  [[nodiscard]] std::optional<Decision> of_waiting() const {
    if (is_cancelled()) return ends_cancelled();
    if (task_ != nullptr && has_ended(task_->phase)) return ends(StagePhase::failed, end_of_task());
    bool all_done = true;
    for (const std::int32_t n : stage_.after) {
      const StageState& before = stage_at(pipeline_, n);
      const bool broke = before.phase == StagePhase::failed || before.phase == StagePhase::stopped;
      if (broke) {
        return ends(StagePhase::stopped, after_chain_stopped("stage " + before.name + " " +
                                                             std::string(name_of(before.phase))));
      }
      all_done = all_done && before.phase == StagePhase::done;
    }
    if (!all_done) return std::nullopt;
    if (std::string why = broken_condition(pipeline_, stage_); !why.empty()) {
      return ends(StagePhase::stopped, after_chain_stopped(why));
    }
    if (stage_.task.valid()) {
      return StageEntered{pipeline_.id, number_, stage_.task, ServiceId::none(), {}};
    }
    return deploy();
  }

  // Names may have been given away since the submission.
  [[nodiscard]] std::optional<Decision> deploy() const {
    const ServiceSpec& spec = *stage_.deploys;
    const auto live = find_live_service(state_, spec.name);
    if (!live) {
      if (find_live_task(state_, spec.name)) {
        return ends(StagePhase::failed, "a task is called " + spec.name + " by now");
      }
      const ServiceId next(static_cast<std::uint32_t>(state_.services.size()));
      return StageEntered{pipeline_.id, number_, TaskId::none(), next, spec.team};
    }
    const ServiceState& service = state_.service(*live);
    if (service.spec.owner.uid != pipeline_.owner.uid) {
      return ends(StagePhase::failed, "the service " + spec.name + " is another user's by now");
    }
    // Until that version is there, or given up; one that nothing has tried may be so for ever.
    if (service.roll && !is_untried(service)) return std::nullopt;
    return StageEntered{pipeline_.id, number_, TaskId::none(), *live, spec.team};
  }

  [[nodiscard]] std::optional<Decision> of_task() const {
    if (task_ == nullptr) return ends(StagePhase::failed, "its task is no longer remembered");
    if (!has_ended(task_->phase)) {
      if (is_cancelled() && task_->phase == Phase::waiting) return ends_cancelled();
      return std::nullopt;  // asked to stop, it ends by itself
    }
    if (task_->phase == Phase::finished) return ends(StagePhase::done);
    if (is_cancelled()) return ends_cancelled();
    return ends(StagePhase::failed, end_of_task());
  }

  [[nodiscard]] std::string end_of_task() const {
    const std::string phase(name_of(task_->phase));
    return task_->detail.empty() || task_->detail == phase ? phase : phase + ": " + task_->detail;
  }

  [[nodiscard]] std::optional<Decision> of_service() const {
    const ServiceState& service = state_.service(stage_.service);
    if (is_cancelled()) return ends_cancelled();
    if (service.removed) return ends(StagePhase::failed, "the service was removed");
    if (!stage_.fault.empty()) return ends(StagePhase::failed, stage_.fault);
    if (!service.rolled_back.empty()) {
      return ends(StagePhase::failed, "rolled back: " + service.rolled_back);
    }
    if (service.roll && !is_untried(service)) return std::nullopt;
    const bool serves = std::any_of(service.replicas.begin(), service.replicas.end(),
                                    [&](TaskId id) { return state_.tasks.at(id).ready; });
    if (serves || service.spec.min_replicas == 0) return ends(StagePhase::done);
    if (service.failures >= std::max(1, state_.spec.max_restarts)) {
      return ends(StagePhase::failed,
                  std::to_string(service.failures) + " starts of its replicas in a row failed");
    }
    return std::nullopt;
  }

  const PoolState& state_;
  const PipelineState& pipeline_;
  std::int32_t number_;
  const StageState& stage_;
  const TaskState* task_;
};

}  // namespace

// ---- the priority group ----------------------------------------------------------------------

namespace {

// Of a replica: the pipeline that is deploying its version.
std::optional<Time> due_as_deployed(const PoolState& state, const TaskState& replica) {
  if (state.service(replica.service).version != replica.version) return std::nullopt;
  for (const PipelineState& pipeline : state.pipelines) {
    if (pipeline.ended != Time::never()) continue;
    for (const StageState& stage : pipeline.stages) {
      const bool deploys = stage.phase == StagePhase::running && stage.service == replica.service;
      if (deploys && !stage.after.empty()) return pipeline.submitted;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Time> due_in_chain(const PoolState& state, const TaskState& task) {
  if (task.service.valid()) return due_as_deployed(state, task);
  const PipelineState* pipeline = live_pipeline_of(state, task);
  if (pipeline == nullptr) return std::nullopt;
  const bool later =
      task.first_started != Time(0) || !stage_at(*pipeline, task.stage).after.empty();
  return later ? std::optional(pipeline->submitted) : std::nullopt;
}

bool chain_protects(const PoolState& state, const TaskState& task) {
  const PipelineState* pipeline = live_pipeline_of(state, task);
  if (pipeline == nullptr || pipeline->begun == Time::never()) return false;
  // A long training is for inference to take again, as any other: its stage has had its time.
  const Time since = task.first_started != Time(0) ? task.first_started : task.submitted;
  return state.now < since + state.spec.preempt.chain_protect;
}

std::int32_t weight_in_chain(const PoolState& state, const TaskState& task) {
  const std::int32_t own = state.tier(task.tier).weight;
  if (!chain_protects(state, task)) return own;
  return std::max(own, state.tier(find_pipeline(state, task.pipeline)->group).weight);
}

TierId turn_in_chain(const PoolState& state, const TaskState& task) {
  if (!chain_protects(state, task)) return task.tier;
  return std::min(task.tier, find_pipeline(state, task.pipeline)->group);
}

bool is_carried_by_chain(const PoolState& state, const TaskState& task) {
  const PipelineState* pipeline = live_pipeline_of(state, task);
  if (pipeline == nullptr || state.spec.preempt.chain_protect.value == 0) return false;
  return state.tier(pipeline->group).weight > state.tier(task.tier).weight;
}

// ---- steps -----------------------------------------------------------------------------------

std::optional<Decision> next_step(const PoolState& state, const PipelineState& pipeline) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    auto step = StageStep(state, pipeline, static_cast<std::int32_t>(i)).next();
    if (step) return step;
  }
  return std::nullopt;
}

bool metrics_are_asked(const PipelineState& pipeline, std::int32_t stage) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(), [&](const StageState& later) {
    return std::any_of(later.when.begin(), later.when.end(),
                       [&](const StageCondition& condition) { return condition.stage == stage; });
  });
}

std::string stages_text(const PoolState& state, const TaskState& task) {
  const PipelineState* pipeline = find_pipeline(state, task.pipeline);
  if (pipeline == nullptr) return "waits for stages before it";
  std::string names;
  for (const std::int32_t n : stage_at(*pipeline, task.stage).after) {
    const StageState& before = stage_at(*pipeline, n);
    if (before.phase == StagePhase::done) continue;
    names +=
        (names.empty() ? "" : ", ") + before.name + " (" + std::string(name_of(before.phase)) + ")";
  }
  if (names.empty()) return "it enters next";
  return "waits for stage " + names + " of pipeline " + pipeline->name;
}

std::string metric_text(std::int64_t millionths) {
  constexpr std::uint64_t one = 1'000'000;
  const bool negative = millionths < 0;
  const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(millionths)
                                      : static_cast<std::uint64_t>(millionths);
  std::string text = (negative ? "-" : "") + std::to_string(size / one);
  std::string rest = std::to_string(one + size % one).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return rest.empty() ? text : text + "." + rest;
}

}  // namespace neap
