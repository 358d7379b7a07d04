#include "daemon/narrate.h"

#include <optional>

#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/adoption.h"

namespace neap::daemon {

namespace {

// "TaskPlaced" -> "task_placed"
std::string snake(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      if (!out.empty()) out.push_back('_');
      out.push_back(static_cast<char>(c - 'A' + 'a'));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string seconds_text(Micros time) {
  return std::to_string(time.value / 1'000'000) + "." + std::to_string(time.value / 100'000 % 10) +
         " s";
}

class Narrator {
 public:
  Narrator(const PoolState& state, Time at, TaskId reporter, Narration& out)
      : state_(state), at_(at), reporter_(reporter), out_(out) {}

  void operator()(const PoolConfigured& e) {
    tell_all("pool file taken: guard " + std::to_string(e.spec.inference_guard_min) + ", buffer " +
             std::to_string(e.spec.elastic_buffer) + ", " + std::to_string(e.spec.tiers.size()) +
             " tiers");
  }
  void operator()(const NodeJoined& e) {
    out_.subject = e.spec.name;
    tell_all(std::to_string(e.spec.devices.size()) + " devices in domain " + e.spec.fault_domain);
  }
  void operator()(const NodeUnreachable& e) { about(e.node, "unreachable"); }
  void operator()(const NodeLost& e) { about(e.node, "lost"); }
  void operator()(const DeviceHealthChanged& e) {
    about(e.node + "/" + std::to_string(e.index),
          e.health == DeviceHealth::healthy ? "healthy" : "failed: " + e.detail);
  }
  void operator()(const ForeignMemoryChanged& e) {
    about(e.node + "/" + std::to_string(e.index),
          std::to_string(e.used.value) + " MiB held from outside the pool");
  }
  void operator()(const TaskSubmitted& e) {
    by_name(e.spec.name);
    owned(e.spec.name, e.spec.owner.uid);
    say("submitted by " + e.spec.owner.user + " in tier " + e.spec.tier);
  }
  void operator()(const TaskCancelRequested& e) {
    by_name(e.name);
    say("cancel asked by " + e.by);
  }
  void operator()(const ServiceSubmitted& e) {
    owned(e.spec.name, e.spec.owner.uid);
    say("service submitted by " + e.spec.owner.user + ", " + std::to_string(e.spec.min_replicas) +
        " to " + std::to_string(e.spec.max_replicas) + " replicas");
  }
  void operator()(const ServiceRemoveRequested& e) {
    service(e.name);
    say("removal asked by " + e.by);
  }
  void operator()(const ServiceScaled& e) {
    service(e.name);
    say(std::to_string(e.min_replicas) + " to " + std::to_string(e.max_replicas) +
        " replicas, asked by " + e.by);
  }
  void operator()(const ServiceMeasured& e) {
    service(e.name);
    say(e.in_use ? std::to_string(*e.in_use) + " requests in use" : "load unknown");
    if (e.queued && *e.queued > 0)
      out_.message += ", " + std::to_string(*e.queued) + " of them wait";
    if (e.first_byte_p95)
      out_.message += ", p95 to the first byte " + seconds_text(*e.first_byte_p95);
  }
  void operator()(const PauseRequested& e) {
    tell_all("paused by " + e.by + (e.why.empty() ? "" : ": " + e.why));
  }
  void operator()(const ResumeRequested& e) { tell_all("resumed by " + e.by); }
  void operator()(const DrillStarted& e) {
    about(e.service, "drill: " + std::to_string(e.replicas) + " replicas for " +
                         seconds_text(e.length) + ", asked by " + e.by);
  }
  void operator()(const DrillStopRequested& e) { tell_all("drill stopped by " + e.by); }
  void operator()(const AdoptionChangeRequested& e) {
    tell_all("stage " + std::string(name_of(e.to)) + " of adoption, asked by " + e.by +
             (e.forced ? ", forced" : "") + (e.why.empty() ? "" : ": " + e.why));
  }
  void operator()(const MemoryObserved& e) {
    allocation(e.allocation);
    say(std::to_string(e.peak.value) + " MiB of a device in use at most");
  }
  void operator()(const TimerFired&) { tell_all("a timer was due"); }
  void operator()(const TaskStarted& e) { report(e, "running"); }
  void operator()(const ReplicaHealthy& e) { report(e, "healthy"); }
  void operator()(const ReplicaUnhealthy& e) { report(e, "unhealthy: " + e.detail); }
  void operator()(const ContractGreeting& e) {
    report(e, std::string("speaks the contract") + (e.on_demand ? ", checkpoints on demand" : ""));
  }
  void operator()(const StepsReported& e) {
    report(e, std::to_string(e.count) + " steps, the last is " + std::to_string(e.last));
  }
  void operator()(const RequestsServed& e) {
    allocation(e.allocation);
    say(std::to_string(e.responses) + " responses, " + std::to_string(e.within_slo) +
        " within their objective");
  }
  void operator()(const CheckpointDurable& e) {
    report(e,
           "checkpoint of step " + std::to_string(e.step) + " durable in " + seconds_text(e.save));
  }
  void operator()(const YieldAcknowledged& e) {
    report(e, "yielding at step " + std::to_string(e.step));
  }
  void operator()(const ContractBroken& e) { report(e, "contract: " + e.detail); }
  void operator()(const TaskExited& e) {
    report(e, e.signal != 0  ? "ended by signal " + std::to_string(e.signal)
              : e.code == 75 ? "yielded (exit 75)"
                             : "exited with " + std::to_string(e.code));
    if (!e.detail.empty()) out_.message += ": " + e.detail;
  }
  void operator()(const StartFailed& e) { report(e, "could not be started: " + e.detail); }

  void operator()(const PlacementLearned& e) {
    say("placement learned from " + std::to_string(e.seen) + " tasks of " +
        std::to_string(e.kinds.size()) + " kinds");
  }

  void operator()(const WaitExpected& e) {
    tell_all("tasks of the tier " + e.tier + " are expected to wait " + seconds_text(e.wait));
  }

  void operator()(const ServiceReplaced& e) {
    service(e.spec.name);
    say("a new version submitted by " + e.by);
  }
  void operator()(const PipelineSubmitted& e) {
    owned(e.spec.name, e.spec.owner.uid);
    say("pipeline of " + std::to_string(e.spec.stages.size()) + " stages submitted by " +
        e.spec.owner.user);
  }
  void operator()(const PipelineCancelRequested& e) {
    pipeline(find_pipeline(state_, e.name));
    say("cancel asked by " + e.by);
  }
  void operator()(const MetricsRead& e) {
    stage(e.pipeline, e.stage);
    say(e.fault.empty() ? std::to_string(e.values.size()) + " metrics read"
                        : "no metrics: " + e.fault);
  }

  void operator()(const TaskAdmitted& d) {
    task(d.task);
    say(d.dedicated    ? "admitted to the dedicated partition"
        : d.releasable ? "admitted, may use lendable devices"
                       : "admitted");
  }
  void operator()(const TaskRefused& d) {
    task(d.task);
    say("refused, " + d.condition + ": " + d.detail);
  }
  void operator()(const TaskPlaced& d) {
    task(d.task);
    std::string until;
    if (d.lender.valid()) {
      const bool known = d.leaves_by != Time::never();
      until = ", lent by " + victim_name(d.lender, d.task) +
              (known ? " for " + seconds_text(d.leaves_by - at_) : " until it needs them");
    }
    say("placed on " + place_text(state_, d.slots) + until);
  }
  void operator()(const PreemptionPlanned& d) {
    task(d.task);
    std::string victims;
    for (const Victim& v : d.victims) {
      victims += (victims.empty() ? "" : ", ") + victim_name(v.task, d.task) + " (" +
                 std::string(name_of(v.mode)) + ")";
    }
    say("claims " + place_text(state_, d.slots) + ", to be left by " + victims);
  }
  void operator()(const PreemptionDropped& d) {
    task(d.task);
    say("claim given up: " + d.why);
  }
  void operator()(const RoomReserved& d) {
    task(d.task);
    std::string tenants;
    for (const Victim& v : d.victims) {
      tenants += (tenants.empty() ? "" : ", ") + victim_name(v.task, d.task);
    }
    say("has waited long: " + place_text(state_, d.slots) + " is kept for it once " + tenants +
        " left, expected within " + seconds_text(d.expected - at_));
  }
  void operator()(const MovePlanned& d) {
    task(d.task);
    if (state_.tasks.at(d.task).spec.request.least > 0) {
      return say("to go on with " + std::to_string(d.slots.size()) + " of " +
                 std::to_string(state_.tasks.at(d.task).spec.request.count) + " devices, " +
                 place_text(state_, d.slots) +
                 (d.for_task.valid() ? ", to make room for " + victim_name(d.for_task, d.task)
                                     : ", which are free"));
    }
    say("to be moved to " + place_text(state_, d.slots) + " to make room" +
        (d.for_task.valid() ? " for " + victim_name(d.for_task, d.task) : ""));
  }
  void operator()(const DemandCounted& d) {
    if (d.slots == 0) return tell_all("the guard begins to learn from the traffic");
    tell_all(d.demand ? "demand of the slot: " + std::to_string(*d.demand) + " devices"
                      : "demand of the slot: not known");
  }
  void operator()(const LoadingEnded& d) {
    task(d.task);
    say("counts as loaded");
  }
  void operator()(const LookScheduled& d) {
    tell_all(std::string(d.look == Look::room     ? "who waits long"
                         : d.look == Look::growth ? "who could have more devices"
                                                  : "what could be consolidated") +
             " is looked at again within " + seconds_text(d.at - at_));
  }
  void operator()(const YieldAsked& d) {
    task(d.task);
    const bool moves = d.reason == StopReason::moved;
    say("asked to yield (" + std::string(name_of(d.mode)) + ", " +
        (moves ? "moved to make room" : std::string(name_of(d.reason))) + "), expected within " +
        seconds_text(d.release_by - at_));
  }
  void operator()(const YieldWithdrawn& d) {
    task(d.task);
    say("the yield is no longer needed");
  }
  void operator()(const CheckpointAsked& d) {
    task(d.task);
    say("checkpoint overdue, asked for (" + std::to_string(d.missed) + ")");
  }
  void operator()(const StopAsked& d) {
    task(d.task);
    say("asked to stop: " + std::string(name_of(d.reason)));
  }
  void operator()(const KillAsked& d) {
    task(d.task);
    say("killed: " + std::string(name_of(d.reason)));
  }
  void operator()(const BackoffEnded& d) {
    task(d.task);
    say("waits for devices again");
  }
  void operator()(const ReplicaAdded& d) {
    task(d.task);
    say("replica added: " + d.why);
  }
  void operator()(const ReplicaDropped& d) {
    task(d.task);
    say("replica dropped: " + d.why);
  }
  void operator()(const RolesAssigned& d) {
    tell_all(std::to_string(d.guard.size()) + " guard and " + std::to_string(d.buffer.size()) +
             " buffer devices" +
             (d.lane.empty() ? "" : ", " + std::to_string(d.lane.size()) + " of the lane"));
  }
  void operator()(const StartBoundSet& d) {
    task(d.task);
    if (d.code == BoundCode::issued) {
      say("starts within " + seconds_text(d.start_by - at_) + " at the latest; " +
          std::to_string(d.ahead) + " may come before it");
    } else {
      say("no start is promised: " + std::string(name_of(d.code)));
    }
  }
  void operator()(const TaskForced& d) {
    task(d.task);
    say("has waited as long as its tier allows: goes before all others");
  }
  void operator()(const TierChanged& d) {
    task(d.task);
    say("goes on in the tier " + state_.tier(d.tier).name + ": " + d.why);
  }
  void operator()(const StageEntered& d) {
    stage(d.pipeline, d.stage);
    say("entered: the stages before it are done");
  }
  void operator()(const StageEnded& d) {
    stage(d.pipeline, d.stage);
    say(std::string(name_of(d.outcome)) + (d.why.empty() ? "" : ": " + d.why));
  }
  void operator()(const ServiceRolled& d) {
    const ServiceSpec& spec = state_.service(d.service).spec;
    owned(spec.name, spec.owner.uid);
    const std::string taken = d.why.empty() ? "the new version has taken over" : d.why;
    say(d.outcome == RollOutcome::done ? taken : "the new version is given up: " + d.why);
  }
  void operator()(const DeviceExcluded& d) {
    device(d.device);
    tell_all("left out of the pool: " + std::to_string(d.foreign.value) +
             " MiB are held by processes outside it");
  }
  void operator()(const DeviceReadmitted& d) {
    device(d.device);
    tell_all("back in the pool");
  }
  void operator()(const WaitReasonChanged& d) {
    tell_all("tasks of shape " + std::to_string(d.shape.value) +
             " wait for: " + std::string(name_of(d.code)));
  }
  void operator()(const ConditionChanged& d) {
    tell_all(d.condition + (d.active ? ": " + d.detail : " is over"));
  }
  void operator()(const PreemptRetryScheduled&) {
    tell_all("no task may yield now; looked at again in a few seconds");
  }
  void operator()(const DrillPaused&) { tell_all("drill: preemption and scaling are paused"); }
  void operator()(const DrillResumed&) { tell_all("drill: resumed"); }
  void operator()(const DrillWithdrawn& d) {
    tell_all(d.why.empty() ? "drill: its time is over" : "drill withdrawn: " + d.why);
  }
  void operator()(const DrillEnded& d) {
    tell_all(std::string("drill ") + (d.passed ? "passed: " : "not passed: ") + d.detail);
  }

 private:
  void say(std::string text) { out_.message = std::move(text); }
  void tell_all(std::string text) {
    out_.about_pool = true;
    say(std::move(text));
  }
  void about(std::string subject, std::string text) {
    out_.subject = std::move(subject);
    tell_all(std::move(text));
  }
  void owned(const std::string& name, std::uint32_t uid) {
    out_.subject = name;
    out_.owner_uid = uid;
  }
  [[nodiscard]] std::string name(TaskId id) const {
    const TaskState* t = state_.tasks.find(id);
    return t == nullptr ? "task " + std::to_string(id.value) : t->spec.name;
  }
  void task(TaskId id) {
    out_.task = id;
    out_.subject = name(id);
    if (const TaskState* t = state_.tasks.find(id)) out_.owner_uid = t->spec.owner.uid;
  }
  // Names are used again, by others too: the task that bore it at the time of the record.
  void by_name(const std::string& name) {
    const auto bore_it = [&](const TaskState& t) {
      return t.spec.name == name && t.submitted <= at_ &&
             (!has_ended(t.phase) || t.phase_since >= at_);
    };
    out_.subject = name;
    if (const auto id = find_live_task(state_, name); id && bore_it(state_.tasks.at(*id))) {
      return task(*id);
    }
    const auto& ended = state_.index->ended;
    for (auto at = ended.rbegin(); at != ended.rend() && at->first >= at_; ++at) {
      const TaskState* t = state_.tasks.find(at->second);
      if (t != nullptr && bore_it(*t)) return task(t->id);
    }
  }
  // When a service came and went is not kept: its owner is known where all of its name agree.
  void service(const std::string& name) {
    std::optional<std::uint32_t> owner;
    for (const ServiceState& one : state_.services) {
      if (one.spec.name != name) continue;
      const std::uint32_t uid = one.spec.owner.uid;
      owner = owner.value_or(uid) == uid ? uid : 0;
    }
    owned(name, owner.value_or(0));
  }
  // Whose work leaves a device is not for whoever comes after him.
  [[nodiscard]] std::string victim_name(TaskId victim, TaskId for_task) const {
    const TaskState* a = state_.tasks.find(victim);
    const TaskState* b = state_.tasks.find(for_task);
    const bool same = a != nullptr && b != nullptr && a->spec.owner.uid == b->spec.owner.uid;
    return same ? name(victim) : "another user's task";
  }
  void pipeline(const PipelineState* pipeline) {
    if (pipeline != nullptr) owned(pipeline->name, pipeline->owner.uid);
  }
  // Of a task its task, so that it is in its trail.
  void stage(PipelineId id, std::int32_t number) {
    const PipelineState* of = find_pipeline(state_, id);
    if (of == nullptr) return;
    const StageState& stage = of->stages[static_cast<std::size_t>(number)];
    pipeline(of);
    out_.subject = of->name + "." + stage.name;
    if (stage.task.valid()) out_.task = stage.task;
  }
  void device(DeviceId id) {
    const DeviceState& d = state_.device(id);
    out_.subject = state_.node(d.node).name + "/" + std::to_string(d.index);
  }
  void allocation(AllocationId id) {
    if (reporter_.valid()) return task(reporter_);
    const auto found = state_.index->allocations.find(id);
    if (found != state_.index->allocations.end()) task(found->second);
  }
  template <class E>
  void report(const E& e, std::string text) {
    allocation(e.stamp.source);
    say(std::move(text));
  }

  const PoolState& state_;
  Time at_;
  TaskId reporter_;
  Narration& out_;
};

template <class R>
Narration narrate_record(const PoolState& state, Time at, const R& record, TaskId reporter) {
  Narration out;
  out.kind = snake(name_of(record));
  std::visit(Narrator(state, at, reporter, out), record);
  return out;
}

}  // namespace

Narration narrate(const PoolState& state, Time at, const Event& event, TaskId reporter) {
  return narrate_record(state, at, event, reporter);
}
Narration narrate(const PoolState& state, Time at, const Decision& decision) {
  return narrate_record(state, at, decision, TaskId::none());
}

std::string place_text(const PoolState& state, const std::vector<Slot>& slots) {
  std::string text;
  NodeId node;
  for (const Slot& slot : slots) {
    const DeviceState& device = state.device(slot.device);
    if (device.node != node) {
      text += (text.empty() ? "" : "; ") + state.node(device.node).name + ": gpu ";
      node = device.node;
    } else {
      text += ", ";
    }
    text += std::to_string(device.index);
  }
  return text;
}

}  // namespace neap::daemon
