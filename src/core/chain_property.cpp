// Any pipelines, tasks and services, with ends good and bad in any order (SPEC D9, C4, S8): a stage
// enters when those before it are done and its conditions hold and not otherwise, nobody takes the
// devices of a chain who has not more weight than it, and a service that rolls never has fewer
// ready replicas by a decision of the engine than it had wanted. Each is seen to fail on a bug that
// is planted.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/testing/any_below.h"
#include "core/testing/script.h"

namespace neap::chain_property {
namespace {

using testing::any_below;
using testing::Script;

// ---- what must hold before each decision is applied ------------------------------------------

class Watcher {
 public:
  // The state just before the decision.
  void check(const PoolState& state, const Decision& decision) {
    if (const auto* entered = std::get_if<StageEntered>(&decision)) check_entry(state, *entered);
    if (const auto* plan = std::get_if<PreemptionPlanned>(&decision)) check_plan(state, *plan);
    if (const auto* stop = std::get_if<StopAsked>(&decision)) check_stop(state, *stop);
  }
  std::vector<std::string> faults;

 private:
  void check_entry(const PoolState& state, const StageEntered& d) {
    const PipelineState& pipeline = *find_pipeline(state, d.pipeline);
    const StageState& stage = pipeline.stages[static_cast<std::size_t>(d.stage)];
    if (stage.phase != StagePhase::waiting) faults.push_back(stage.name + " enters twice");
    for (const std::int32_t n : stage.after) {
      const StageState& before = pipeline.stages[static_cast<std::size_t>(n)];
      if (before.phase != StagePhase::done) faults.push_back(stage.name + " enters too early");
    }
    for (const StageCondition& condition : stage.when) {
      const StageState& of = pipeline.stages[static_cast<std::size_t>(condition.stage)];
      bool holds = false;
      for (const Metric& metric : of.metrics) {
        if (metric.name != condition.metric) continue;
        holds = condition.comparison == Comparison::at_least ? metric.value >= condition.bound
                                                             : metric.value <= condition.bound;
      }
      if (!holds) faults.push_back(stage.name + " enters and its condition does not hold");
    }
  }

  void check_plan(const PoolState& state, const PreemptionPlanned& d) {
    const std::int32_t wanted = state.tier(state.tasks.at(d.task).tier).weight;
    for (const Victim& victim : d.victims) {
      const TaskState& task = state.tasks.at(victim.task);
      const bool asked = task.phase == Phase::running && victim.mode != ReleaseMode::finish;
      if (!task.pipeline.valid() || !asked) continue;  // who leaves already leaves for others
      const PipelineState* pipeline = find_pipeline(state, task.pipeline);
      if (pipeline == nullptr || pipeline->ended != Time::never()) continue;
      const Time until = pipeline->begun == Time::never()
                             ? Time(0)
                             : task.first_started + state.spec.preempt.chain_protect;
      const bool lent = std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
        return state.device(slot.device).role == Role::buffer;
      });
      if (state.now < until && !lent && state.tier(pipeline->group).weight >= wanted) {
        faults.push_back(task.spec.name + " is cut by an equal");
      }
    }
  }

  void check_stop(const PoolState& state, const StopAsked& d) {
    const TaskState& task = state.tasks.at(d.task);
    if (d.reason != StopReason::replaced || !task.ready) return;
    const ServiceState& service = state.service(task.service);
    const auto ready = std::count_if(service.replicas.begin(), service.replicas.end(),
                                     [&](TaskId id) { return state.tasks.at(id).ready; });
    const std::int32_t wanted = std::clamp(service.roll ? service.roll->wanted : 0,
                                           service.spec.min_replicas, service.spec.max_replicas);
    if (ready - 1 < wanted) faults.push_back(task.spec.name + " leaves before another is there");
  }
};

// ---- a pool in which anything happens --------------------------------------------------------

enum class Bug : std::uint8_t { none, enters_early, ignores_conditions, cuts_chains, stops_first };

class BusyPool {
 public:
  explicit BusyPool(Bug bug) : bug_(bug) {
    spec_.tiers = {{"infer", 100, Purpose::inference}, {"train", 40, Purpose::batch}};
    spec_.preempt.protect_min = minutes(1);
    spec_.preempt.checkpoint_interval = minutes(2);
    spec_.elastic_buffer = any_below(2);
    spec_.preempt.chain_protect = any_below(4) == 0 ? minutes(20) : hours(24);
    happen(PoolConfigured{spec_});
    NodeJoined node{{"n", "a", {}}};
    for (int i = 0; i < 3; ++i) {
      node.spec.devices.push_back({"n-" + std::to_string(i), "A", MiB(80'000), false});
    }
    happen(node);
  }

  void anything() {
    now_ = now_ + seconds(any_below(3) == 0 ? any_below(1'200) : 1);
    switch (any_below(14)) {
      case 0:
        return happen(PipelineSubmitted{any_pipeline()});
      case 1: {
        TaskSpec task = Script::training("t" + std::to_string(made_++));
        task.tier = "train";
        return happen(TaskSubmitted{task});
      }
      case 2:
        return happen(ServiceSubmitted{any_service("s" + std::to_string(any_below(2)))});
      case 3:
        return happen(ServiceReplaced{any_service("s" + std::to_string(any_below(2))), "ann"});
      case 4:
        if (any_below(3) > 0 || state_.pipelines.empty()) return happen(TimerFired{});
        return happen(PipelineCancelRequested{state_.pipelines.back().name, "ann"});
      case 5:
        return read_metrics();
      default:
        return report();
    }
  }

  [[nodiscard]] const std::vector<std::string>& faults() const { return watcher_.faults; }
  // Everything is brought to an end, and so is every pipeline.
  [[nodiscard]] bool drains() {
    for (int i = 0; i < 2'000; ++i) {
      now_ = now_ + seconds(5);
      happen(TimerFired{});
      read_metrics();
      if (!end_one()) break;
    }
    return std::all_of(state_.pipelines.begin(), state_.pipelines.end(),
                       [](const PipelineState& p) { return p.ended != Time::never(); });
  }
  // What still waits, and for what.
  [[nodiscard]] std::string left() const {
    std::string text;
    for (const PipelineState& pipeline : state_.pipelines) {
      if (pipeline.ended != Time::never()) continue;
      for (const StageState& stage : pipeline.stages) {
        text += pipeline.name + "." + stage.name + " " + std::string(name_of(stage.phase));
        const TaskState* task = stage.task.valid() ? state_.tasks.find(stage.task) : nullptr;
        if (task != nullptr && task->phase == Phase::waiting) {
          text += " (" + explain_wait(state_, *task) + ")";
        }
        text += "; ";
      }
    }
    return text;
  }

 private:
  void happen(const Event& event) {
    if (!check_event(state_, event)) return;
    StepResult result;
    PoolState before = state_;
    apply(before, now_, event);
    step(state_, now_, event, result);
    if (const auto planted = plant(before)) return watcher_.check(before, *planted);
    for (const Decision& decision : result.decisions) {
      watcher_.check(before, decision);
      apply(before, now_, decision);
    }
  }

  // What a bug would decide here.
  [[nodiscard]] std::optional<Decision> plant(const PoolState& before) const {
    switch (bug_) {
      case Bug::enters_early:
      case Bug::ignores_conditions:
        return plant_entry(before);
      case Bug::cuts_chains:
        return plant_cut(before);
      case Bug::stops_first:
        return plant_stop(before);
      case Bug::none:
        break;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Decision> plant_entry(const PoolState& before) const {
    for (const PipelineState& pipeline : before.pipelines) {
      for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        const StageState& stage = pipeline.stages[i];
        const bool wanted = bug_ == Bug::enters_early ? !stage.after.empty() : !stage.when.empty();
        if (stage.phase != StagePhase::waiting || !stage.task.valid() || !wanted) continue;
        return StageEntered{pipeline.id, static_cast<std::int32_t>(i), stage.task, {}, {}};
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] static std::optional<Decision> plant_cut(const PoolState& before) {
    std::optional<TaskId> waits, runs;
    before.tasks.for_each([&](const TaskState& task) {
      if (task.service.valid() && task.phase == Phase::waiting) waits = task.id;
      if (task.pipeline.valid() && task.phase == Phase::running) runs = task.id;
    });
    if (!waits || !runs) return std::nullopt;
    PreemptionPlanned plan;
    plan.task = *waits;
    plan.slots = before.tasks.at(*runs).slots;
    plan.victims = {{*runs, ReleaseMode::boundary, before.now, 0}};
    return plan;
  }
  [[nodiscard]] static std::optional<Decision> plant_stop(const PoolState& before) {
    for (const ServiceState& service : before.services) {
      if (!service.roll) continue;
      for (const TaskId id : service.replicas) {
        const TaskState& task = before.tasks.at(id);
        if (!task.ready || task.version == service.version) continue;
        return StopAsked{id, task.allocation, StopReason::replaced, before.now};
      }
    }
    return std::nullopt;
  }

  PipelineSpec any_pipeline() {
    PipelineSpec spec;
    spec.name = "p" + std::to_string(made_++);
    const int count = 1 + any_below(4);
    for (int i = 0; i < count; ++i) {
      StageSpec& stage = spec.stages.emplace_back();
      stage.name = "g" + std::to_string(i);
      for (int before = 0; before < i; ++before) {
        if (spec.stages[static_cast<std::size_t>(before)].task && any_below(2) == 0) {
          stage.after.push_back(before);
        }
      }
      if (i + 1 == count && any_below(2) == 0) {
        stage.service = any_service("s" + std::to_string(any_below(2)));
      } else {
        stage.task = Script::training(spec.name + "." + stage.name);
        stage.task->tier = "train";
        stage.task->contract.interval = minutes(2);
      }
      if (stage.after.empty() || any_below(2) == 0) continue;
      const auto comparison = any_below(2) == 0 ? Comparison::at_least : Comparison::at_most;
      stage.when.push_back({stage.after.front(), "m", comparison, any_below(3)});
    }
    return spec;
  }

  ServiceSpec any_service(const std::string& name) {
    ServiceSpec service = Script::service(name, 1 + any_below(2), 2);
    service.tier = "infer";
    service.launch = std::to_string(made_++);
    return service;
  }

  void read_metrics() {
    for (const PipelineState& pipeline : state_.pipelines) {
      for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        if (pipeline.stages[i].phase != StagePhase::reading) continue;
        MetricsRead read{pipeline.id, static_cast<std::int32_t>(i), {}, {}};
        if (any_below(4) > 0) read.values = {{"m", any_below(3)}};
        return happen(read);
      }
    }
  }

  std::optional<TaskId> any_holder() {
    std::vector<TaskId> holders;
    state_.tasks.for_each([&](const TaskState& task) {
      if (holds_devices(task.phase)) holders.push_back(task.id);
    });
    if (holders.empty()) return std::nullopt;
    return holders[static_cast<std::size_t>(any_below(static_cast<int>(holders.size())))];
  }

  [[nodiscard]] static ReportStamp stamp_for(const TaskState& task) {
    return {task.allocation, 1, task.report_epoch == 0 ? 1 : task.report_sequence + 1};
  }

  void report() {
    const auto holder = any_holder();
    if (!holder) return;
    const TaskState& task = state_.tasks.at(*holder);
    const ReportStamp stamp = stamp_for(task);
    if (task.phase == Phase::starting) return happen(TaskStarted{stamp});
    if (task.service.valid() && !task.ready && any_below(4) > 0) {
      return happen(ReplicaHealthy{stamp});
    }
    if (task.phase == Phase::yielding || any_below(3) == 0) return end(task);
    if (task.service.valid()) return;
    CheckpointDurable saved;
    saved.stamp = stamp;
    saved.step = task.durable_step + 1;
    saved.captured = now_;
    happen(saved);
  }

  void end(const TaskState& task) {
    if (task.phase == Phase::yielding) {
      happen(TaskExited{stamp_for(task), 75, 0, {}});
    } else if (!task.service.valid() || task.phase == Phase::stopping || any_below(4) == 0) {
      happen(TaskExited{stamp_for(task), any_below(5) == 0 ? 1 : 0, 0, {}});
    }
  }

  // Tasks end well, replicas get healthy. False: nothing is left to do.
  bool end_one() {
    const auto live = std::any_of(state_.pipelines.begin(), state_.pipelines.end(),
                                  [](const PipelineState& p) { return p.ended == Time::never(); });
    if (!live) return false;
    const auto holder = any_holder();
    if (!holder) return true;
    const TaskState& task = state_.tasks.at(*holder);
    const ReportStamp stamp = stamp_for(task);
    if (task.phase == Phase::starting) {
      happen(TaskStarted{stamp});
    } else if (task.phase == Phase::yielding) {
      happen(TaskExited{stamp, 75, 0, {}});
    } else if (task.service.valid() && !task.ready && task.phase == Phase::running) {
      happen(ReplicaHealthy{stamp});
    } else if (!task.service.valid() || task.phase == Phase::stopping) {
      happen(TaskExited{stamp, 0, 0, {}});
    } else {
      // It serves: its service is given up, so that there is room.
      happen(ServiceRemoveRequested{state_.service(task.service).spec.name, "ann"});
    }
    return true;
  }

  Bug bug_;
  PoolSpec spec_;
  PoolState state_;
  Time now_{hours(24 * 100).value};
  Watcher watcher_;
  int made_ = 0;
};

std::string faults_with(Bug bug) {
  BusyPool pool(bug);
  for (int i = 0; i < 120; ++i) pool.anything();
  std::string all;
  for (const std::string& fault : pool.faults()) all += fault + "; ";
  return all;
}

TEST(ChainProperty, StagesEnterInTheirTurnAndNobodyCutsThemD9) {
  const bool holds = rc::check("chains hold", [] {
    const std::string fault = faults_with(Bug::none);
    if (!fault.empty()) RC_FAIL(fault);
  });
  EXPECT_TRUE(holds);
}

TEST(ChainProperty, EveryPipelineComesToAnEndD9) {
  const bool holds = rc::check("chains end", [] {
    BusyPool pool(Bug::none);
    for (int i = 0; i < 60; ++i) pool.anything();
    if (!pool.drains()) RC_FAIL(pool.left());
  });
  EXPECT_TRUE(holds);
}

// Each planted bug is found within so many pools.
TEST(ChainProperty, PlantedBugsAreFoundD9) {
  const std::vector<std::pair<Bug, std::string>> bugs{
      {Bug::enters_early, "enters too early"},
      {Bug::ignores_conditions, "its condition does not hold"},
      {Bug::cuts_chains, "is cut by an equal"},
      {Bug::stops_first, "leaves before another is there"}};
  for (const auto& [bug, words] : bugs) {
    bool found = false;
    rc::check("planted", [&, bug = bug, words = words] {
      found = found || faults_with(bug).find(words) != std::string::npos;
    });
    EXPECT_TRUE(found) << words;
  }
}

}  // namespace
}  // namespace neap::chain_property
