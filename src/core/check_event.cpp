// Refuses what the state forbids, before it becomes a record.
#include <algorithm>

#include "core/apply_parts.h"
#include "core/engine.h"
#include "core/rules/admit.h"
#include "core/rules/adoption.h"
#include "core/rules/lane.h"
#include "core/rules/place/leftover_table.h"
#include "core/rules/teams.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

constexpr std::size_t most_tiers = 64;
constexpr std::size_t most_devices_per_node = 64;

Result<void> refuse(ErrorCode code, std::string message, std::string field = {}) {
  return fail(code, std::move(message), std::move(field));
}

class EventChecker {
 public:
  explicit EventChecker(const PoolState& state) : state_(state) {}

  Result<void> operator()(const PoolConfigured& e) const {
    const PoolSpec& spec = e.spec;
    if (spec.tiers.empty() || spec.tiers.size() > most_tiers) {
      return refuse(ErrorCode::invalid_argument, "a pool has 1 to 64 tiers", "priority_tiers");
    }
    if (spec.inference_guard_min < 0 || spec.elastic_buffer < 0 || spec.total_gpus < 0) {
      return refuse(ErrorCode::invalid_argument, "counts of devices are 0 or more", "pool");
    }
    if (const auto tide = check(spec.tide); !tide) {
      return refuse(ErrorCode::invalid_argument, tide.error().message,
                    "guard." + tide.error().context);
    }
    if (spec.total_gpus > 0 && spec.inference_guard_min > spec.total_gpus) {
      return refuse(ErrorCode::invalid_argument,
                    "a guard of " + std::to_string(spec.inference_guard_min) +
                        " devices is more than the " + std::to_string(spec.total_gpus) +
                        " of this file's total_gpus",
                    "pool.inference_guard_min");
    }
    if (const auto faults = faults_of_teams(spec); !faults.empty()) {
      const TeamFault& first = faults.front();
      return refuse(ErrorCode::invalid_argument, first.message,
                    "teams[" + std::to_string(first.team) + "]." + first.field);
    }
    if (spec.starts.at_once < 0 || spec.starts.apart < Micros(0) ||
        spec.starts.loading < Micros(0)) {
      return refuse(ErrorCode::invalid_argument, "counts and times are 0 or more", "starts");
    }
    if (spec.adoption.begin > AdoptionStage::time || spec.adoption.stabilise < Micros(0)) {
      return refuse(ErrorCode::invalid_argument, "no stage of adoption", "pool.stage");
    }
    const auto heavier = [](const TierSpec& a, const TierSpec& b) { return a.weight > b.weight; };
    if (!std::is_sorted(spec.tiers.begin(), spec.tiers.end(), heavier)) {
      return refuse(ErrorCode::invalid_argument, "tiers are sorted by weight", "priority_tiers");
    }
    if (auto fair = check(spec.fairness, spec.tiers); !fair) return fair;
    return tiers_stay(spec);
  }

  Result<void> operator()(const NodeJoined& e) const {
    if (e.spec.name.empty() || e.spec.devices.empty() ||
        e.spec.devices.size() > most_devices_per_node) {
      return refuse(ErrorCode::invalid_argument, "a node has a name and 1 to 64 devices", "nodes");
    }
    for (const DeviceSpec& device : e.spec.devices) {
      if (device.memory <= MiB(0) || device.model.empty()) {
        return refuse(ErrorCode::invalid_argument, "a device has a model and memory", "nodes");
      }
    }
    const auto known = find_node(state_, e.spec.name);
    return known ? same_devices(*known, e.spec) : Result<void>{};
  }

  Result<void> operator()(const NodeUnreachable& e) const { return known_node(e.node); }
  Result<void> operator()(const NodeLost& e) const { return known_node(e.node); }
  Result<void> operator()(const DeviceHealthChanged& e) const {
    return known_device(e.node, e.index);
  }
  Result<void> operator()(const ForeignMemoryChanged& e) const {
    if (e.used < MiB(0)) return refuse(ErrorCode::invalid_argument, "memory is 0 or more", "used");
    return known_device(e.node, e.index);
  }

  Result<void> operator()(const TaskSubmitted& e) const {
    if (auto named = check_new_name(e.spec.name); !named) return named;
    return check_task(e.spec);
  }

  Result<void> operator()(const TaskCancelRequested& e) const {
    const auto task = find_live_task(state_, e.name);
    if (!task) return refuse(ErrorCode::not_found, "no task " + e.name + " waits or runs");
    if (state_.tasks.at(*task).service.valid()) {
      return refuse(ErrorCode::conflict,
                    e.name + " is a replica of a service: scale the service instead");
    }
    return {};
  }

  Result<void> operator()(const ServiceSubmitted& e) const {
    if (auto named = check_new_name(e.spec.name); !named) return named;
    return check_service(e.spec);
  }

  Result<void> operator()(const ServiceRemoveRequested& e) const { return known_service(e.name); }
  Result<void> operator()(const ServiceScaled& e) const {
    if (auto known = known_service(e.name); !known) return known;
    return check_counts(e.min_replicas, e.max_replicas);
  }
  Result<void> operator()(const ServiceMeasured& e) const {
    if (e.in_use && (*e.in_use < 0 || *e.in_use > 1'000'000'000)) {
      return refuse(ErrorCode::invalid_argument, "requests in use are 0 to 10^9", "in_use");
    }
    for (const auto& [count, field] :
         {std::pair(e.queued, "queued"), std::pair(e.ended, "ended")}) {
      if (!count || (*count >= 0 && *count <= 1'000'000'000)) continue;
      return refuse(ErrorCode::invalid_argument, "requests are 0 to 10^9", field);
    }
    if (e.first_byte_p95 && (*e.first_byte_p95 < Micros(0) || *e.first_byte_p95 > hours(24 * 14))) {
      return refuse(ErrorCode::invalid_argument, "a latency is 0 to 14 days", "first_byte_p95");
    }
    return known_service(e.name);
  }

  Result<void> operator()(const ServiceReplaced& e) const {
    const auto id = find_live_service(state_, e.spec.name);
    if (!id) return refuse(ErrorCode::not_found, "no service is called " + e.spec.name, "name");
    const ServiceState& service = state_.service(*id);
    if (service.spec.owner.uid != e.spec.owner.uid) {
      return refuse(ErrorCode::permission_denied,
                    "the service " + e.spec.name + " belongs to " + service.spec.owner.user,
                    "name");
    }
    if (service.spec.team != e.spec.team) return refuse_other_team(service.spec, e.spec, "team");
    return check_service(e.spec);
  }

  // All or nothing: one stage that would be refused refuses them all.
  Result<void> operator()(const PipelineSubmitted& e) const {
    if (auto named = check_new_name(e.spec.name); !named) return named;
    if (e.spec.stages.empty() || e.spec.stages.size() > most_stages) {
      return refuse(ErrorCode::invalid_argument,
                    "a pipeline has 1 to " + std::to_string(most_stages) + " stages", "stages");
    }
    for (std::size_t i = 0; i < e.spec.stages.size(); ++i) {
      const std::string at = "stages[" + std::to_string(i) + "]";
      const auto in_place = [&at](const Error& error) {
        return Error{error.code, error.message,
                     error.context.empty() ? at : at + "." + error.context};
      };
      if (auto joined = check_joints(e.spec, i); !joined) {
        return tl::unexpected(in_place(joined.error()));
      }
      if (auto work = check_stage(e.spec, i); !work) return tl::unexpected(in_place(work.error()));
    }
    return {};
  }
  Result<void> operator()(const PipelineCancelRequested& e) const {
    const PipelineState* pipeline = find_pipeline(state_, e.name);
    if (pipeline == nullptr) return refuse(ErrorCode::not_found, "no pipeline is called " + e.name);
    if (pipeline->ended != Time::never()) {
      return refuse(ErrorCode::conflict, "the pipeline " + e.name + " has ended already");
    }
    return {};
  }
  Result<void> operator()(const MetricsRead& e) const {
    const PipelineState* pipeline = find_pipeline(state_, e.pipeline);
    const bool known = pipeline != nullptr && e.stage >= 0 &&
                       static_cast<std::size_t>(e.stage) < pipeline->stages.size();
    if (!known || !takes_metrics(pipeline->stages[static_cast<std::size_t>(e.stage)])) {
      return refuse(ErrorCode::conflict, "no stage waits for these metrics");
    }
    if (e.values.size() > most_metrics) {
      return refuse(ErrorCode::too_large,
                    "a stage has up to " + std::to_string(most_metrics) + " metrics", "values");
    }
    return {};
  }
  Result<void> operator()(const PauseRequested&) const { return {}; }
  Result<void> operator()(const ResumeRequested&) const { return {}; }
  Result<void> operator()(const DrillStarted& e) const {
    if (auto known = known_service(e.service); !known) return known;
    return check_drill(state_, state_.service(*find_live_service(state_, e.service)), e);
  }
  Result<void> operator()(const DrillStopRequested&) const {
    if (state_.drill.phase == DrillPhase::demand) return {};
    return refuse(ErrorCode::conflict, "no drill is under way");
  }
  Result<void> operator()(const AdoptionChangeRequested& e) const {
    return check_stage_change(state_, e, state_.now);
  }
  Result<void> operator()(const MemoryObserved& e) const {
    if (e.peak < MiB(0)) return refuse(ErrorCode::invalid_argument, "memory is 0 or more", "peak");
    return live(e.allocation).map(ignore);
  }
  Result<void> operator()(const TimerFired&) const { return {}; }
  Result<void> operator()(const PlacementLearned& e) const {
    const bool counted = std::all_of(e.kinds.begin(), e.kinds.end(),
                                     [](const DemandCount& count) { return count.tasks > 0; });
    if (e.kinds.size() > most_demand_kinds || !counted || e.seen < 0 ||
        e.seen > state_.demand.seen) {
      return refuse(ErrorCode::invalid_argument, "the demand is not one that was seen", "kinds");
    }
    if (!leftover::is_table(e.table)) {
      return refuse(ErrorCode::invalid_argument, "no table of expected leftovers", "table");
    }
    return {};
  }
  Result<void> operator()(const WaitExpected& e) const {
    const auto& tiers = state_.spec.tiers;
    if (std::none_of(tiers.begin(), tiers.end(),
                     [&](const TierSpec& tier) { return tier.name == e.tier; })) {
      return refuse(ErrorCode::not_found, "there is no tier " + e.tier, "tier");
    }
    if (e.wait < Micros(0) || e.wait > hours(24 * 365)) {
      return refuse(ErrorCode::invalid_argument, "a wait is 0 to a year", "wait");
    }
    return {};
  }
  Result<void> operator()(const RequestsServed& e) const { return live(e.allocation).map(ignore); }

  template <class Report>
  Result<void> operator()(const Report& e) const {
    const auto task = live(e.stamp.source);
    if (!task) return tl::unexpected(task.error());
    const TaskState& t = state_.tasks.at(*task);
    const bool next = e.stamp.epoch == t.report_epoch && e.stamp.sequence == t.report_sequence + 1;
    const bool new_epoch = e.stamp.epoch > t.report_epoch && e.stamp.sequence == 1;
    if (!next && !new_epoch) {
      return refuse(ErrorCode::conflict, "report " + std::to_string(e.stamp.sequence) +
                                             " of epoch " + std::to_string(e.stamp.epoch) +
                                             " is not the next one of its source");
    }
    return {};
  }

 private:
  static void ignore(TaskId /*task*/) {}

  [[nodiscard]] Result<TaskId> live(AllocationId allocation) const {
    const auto found = state_.index->allocations.find(allocation);
    if (found == state_.index->allocations.end()) {
      return fail(ErrorCode::not_found, "this allocation has ended or never was");
    }
    return found->second;
  }

  Result<void> check_task(const TaskSpec& spec) const {
    if (auto tier = check_tier(spec.tier); !tier) return tl::unexpected(tier.error());
    if (state_.tier(*find_tier(state_.spec, spec.tier)).purpose == Purpose::inference) {
      return refuse(ErrorCode::invalid_argument,
                    "tier " + spec.tier + " is for services; a task names a training tier", "tier");
    }
    return check_request(state_, spec.request);
  }

  Result<void> check_service(const ServiceSpec& spec) const {
    if (auto tier = check_tier(spec.tier); !tier) return tl::unexpected(tier.error());
    if (state_.tier(*find_tier(state_.spec, spec.tier)).purpose != Purpose::inference) {
      return refuse(ErrorCode::invalid_argument,
                    "tier " + spec.tier + " is for training; a service names an inference tier",
                    "tier");
    }
    if (auto counts = check_counts(spec.min_replicas, spec.max_replicas); !counts) return counts;
    if (spec.concurrency < 1) {
      return refuse(ErrorCode::invalid_argument, "concurrency is 1 or more", "concurrency");
    }
    return check_request(state_, spec.request);
  }

  // Once it has entered, and once: they come just before the end of its task, or after it.
  static bool takes_metrics(const StageState& stage) {
    const bool entered = stage.phase == StagePhase::running || stage.phase == StagePhase::reading;
    return entered && stage.task.valid() && stage.metrics.empty() && stage.fault.empty();
  }

  // How a stage hangs together with those before it.
  static Result<void> check_joints(const PipelineSpec& spec, std::size_t number) {
    const StageSpec& stage = spec.stages[number];
    const auto wrong = [](std::string message, std::string field) {
      return refuse(ErrorCode::invalid_argument, std::move(message), std::move(field));
    };
    if (stage.name.empty()) return wrong("a name is needed", "name");
    for (std::size_t i = 0; i < number; ++i) {
      if (spec.stages[i].name == stage.name) {
        return wrong("two stages are called " + stage.name, "name");
      }
    }
    if (stage.task.has_value() == stage.service.has_value()) {
      return wrong("a stage is a task or a service", "task");
    }
    std::int32_t last = -1;
    for (const std::int32_t before : stage.after) {
      if (before <= last || before >= static_cast<std::int32_t>(number)) {
        return wrong("a stage comes after earlier ones, each named once", "after");
      }
      last = before;
      const StageSpec& other = spec.stages[static_cast<std::size_t>(before)];
      if (other.service) {
        return wrong("stage " + other.name + " is a service, after which nothing comes", "after");
      }
    }
    for (const StageCondition& condition : stage.when) {
      if (!std::binary_search(stage.after.begin(), stage.after.end(), condition.stage)) {
        return wrong("a condition is on a stage that this one comes after", "when");
      }
      if (condition.metric.empty()) return wrong("a condition names a metric", "when.metric");
    }
    return {};
  }

  Result<void> check_stage(const PipelineSpec& spec, std::size_t number) const {
    const StageSpec& stage = spec.stages[number];
    const std::uint32_t owner = stage.task ? stage.task->owner.uid : stage.service->owner.uid;
    if (owner != spec.owner.uid) {
      return refuse(ErrorCode::permission_denied, "all stages belong to who submits the pipeline");
    }
    if (stage.service) {
      if (auto deploys = check_deployment(spec, number); !deploys) return deploys;
      return check_service(*stage.service);
    }
    if (auto named = check_new_name(stage.task->name); !named) return named;
    if (auto task = check_task(*stage.task); !task) return task;
    TaskState judged;
    judged.spec = *stage.task;
    judged.tier = *find_tier(state_.spec, stage.task->tier);
    judged.purpose = state_.tier(judged.tier).purpose;
    const Admission admission = admit(state_, judged);
    if (admission.admitted) return {};
    return refuse(ErrorCode::refused, admission.condition + ": " + admission.detail, "task");
  }

  // A new service, or a new version of one's own.
  Result<void> check_deployment(const PipelineSpec& spec, std::size_t number) const {
    const std::string& name = spec.stages[number].service->name;
    for (std::size_t i = 0; i < number; ++i) {
      const auto& other = spec.stages[i].service;
      if (other && other->name == name) {
        return refuse(ErrorCode::invalid_argument, "two stages deploy the service " + name, "name");
      }
    }
    const auto live = find_live_service(state_, name);
    if (!live) return check_new_name(name);
    const ServiceSpec& old = state_.service(*live).spec;
    if (old.owner.uid != spec.owner.uid) {
      return refuse(ErrorCode::conflict, "the service " + name + " belongs to " + old.owner.user,
                    "name");
    }
    const ServiceSpec& next = *spec.stages[number].service;
    if (old.team != next.team) return refuse_other_team(old, next, "name");
    return {};
  }
  // Its devices are on the account of one team.
  static Result<void> refuse_other_team(const ServiceSpec& old, const ServiceSpec& next,
                                        std::string field) {
    return refuse(ErrorCode::conflict,
                  "the service " + old.name + " is of team " + old.team + ", this is for team " +
                      next.team + "; remove it to submit it for another",
                  std::move(field));
  }

  Result<void> known_node(const std::string& name) const {
    if (find_node(state_, name)) return {};
    return refuse(ErrorCode::not_found, "no node is called " + name);
  }

  Result<void> known_device(const std::string& node, std::int32_t index) const {
    const auto id = find_node(state_, node);
    if (!id) return refuse(ErrorCode::not_found, "no node is called " + node);
    if (index >= 0 && index < state_.node(*id).count) return {};
    return refuse(ErrorCode::not_found, "node " + node + " has no device " + std::to_string(index));
  }

  Result<void> known_service(const std::string& name) const {
    if (find_live_service(state_, name)) return {};
    return refuse(ErrorCode::not_found, "no service is called " + name);
  }

  Result<void> same_devices(NodeId id, const NodeSpec& spec) const {
    const NodeState& node = state_.node(id);
    bool same = static_cast<std::size_t>(node.count) == spec.devices.size();
    for (std::int32_t i = 0; same && i < node.count; ++i) {
      const DeviceState& d = state_.devices[node.first.value + static_cast<std::uint32_t>(i)];
      const DeviceSpec& s = spec.devices[static_cast<std::size_t>(i)];
      same = state_.models[d.model.value].name == s.model && d.memory == s.memory &&
             (d.role == Role::dedicated) == s.dedicated;
    }
    if (same) return {};
    return refuse(ErrorCode::conflict,
                  "node " + spec.name + " is known with other devices; give it a new name");
  }

  // Tasks and services hold their tier's position: while any lives, tiers keep name and position.
  // A service without replicas lives too.
  Result<void> tiers_stay(const PoolSpec& spec) const {
    Result<void> result;
    const auto check = [&](const std::string& tier, TierId at, const std::string& user) {
      if (!result || find_tier(spec, tier) == at) return;
      result = refuse(ErrorCode::conflict,
                      "tier " + tier + " is in use by " + user + " and cannot move or go",
                      "priority_tiers");
    };
    state_.tasks.for_each([&](const TaskState& task) {
      if (!has_ended(task.phase)) check(task.spec.tier, task.tier, task.spec.name);
    });
    for (const ServiceState& service : state_.services) {
      if (!service.removed) check(service.spec.tier, service.tier, service.spec.name);
      if (service.roll && service.roll->phase == RollPhase::forward) {
        const std::string& before = service.roll->before.tier;
        check(before, find_tier(state_.spec, before).value_or(TierId::none()), service.spec.name);
      }
    }
    for (const PipelineState& pipeline : state_.pipelines) {
      if (pipeline.ended == Time::never()) {
        check(state_.tier(pipeline.group).name, pipeline.group, pipeline.name);
      }
      for (const StageState& stage : pipeline.stages) {
        if (!stage.deploys || has_ended(stage.phase)) continue;
        const std::string& tier = stage.deploys->tier;
        check(tier, find_tier(state_.spec, tier).value_or(TierId::none()), pipeline.name);
      }
    }
    return result;
  }

  Result<void> check_tier(const std::string& name) const {
    if (!state_.configured) return refuse(ErrorCode::unavailable, "the pool is not configured yet");
    if (find_tier(state_.spec, name)) return {};
    std::string known;
    for (const TierSpec& tier : state_.spec.tiers) known += (known.empty() ? "" : ", ") + tier.name;
    return refuse(ErrorCode::invalid_argument,
                  "no tier is called \"" + name + "\"; the pool has: " + known, "tier");
  }

  static Result<void> check_counts(std::int32_t least, std::int32_t most) {
    if (least < 0 || most < least || most > 10'000) {
      return refuse(ErrorCode::invalid_argument,
                    "replicas need 0 <= min <= max <= 10000, got " + std::to_string(least) +
                        " and " + std::to_string(most),
                    "replicas");
    }
    return {};
  }

  // One live task or service per name; replicas are called SERVICE.N.
  Result<void> check_new_name(const std::string& name) const {
    if (name.empty()) return refuse(ErrorCode::invalid_argument, "a name is needed", "name");
    const PipelineState* pipeline = find_pipeline(state_, name);
    const bool is_pipeline = pipeline != nullptr && pipeline->ended == Time::never();
    if (is_pipeline || find_live_task(state_, name) || find_live_service(state_, name)) {
      return refuse(ErrorCode::conflict, "the name " + name + " is taken by one that lives",
                    "name");
    }
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && find_live_service(state_, name.substr(0, dot))) {
      return refuse(ErrorCode::conflict,
                    "names that begin with \"" + name.substr(0, dot) +
                        ".\" are those of the replicas of that service",
                    "name");
    }
    const auto& names = state_.index->task_names;
    for (auto at = names.lower_bound(name + "."); at != names.end(); ++at) {
      if (!at->first.starts_with(name + ".")) break;
      if (!state_.tasks.at(at->second).service.valid()) {
        return refuse(ErrorCode::conflict, "task " + at->first + " has a replica's name of " + name,
                      "name");
      }
    }
    return {};
  }

  const PoolState& state_;
};

}  // namespace

Result<void> check_event(const PoolState& state, const Event& event) {
  return std::visit(EventChecker(state), event);
}

}  // namespace neap
