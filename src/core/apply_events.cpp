// What each fact does to the state. Preconditions are those of check_event().
#include <algorithm>

#include "core/apply_chain.h"
#include "core/apply_parts.h"
#include "core/engine.h"
#include "core/model/check.h"
#include "core/rules/adoption.h"
#include "core/rules/profile.h"
#include "core/rules/signals.h"
#include "core/rules/starts.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

// A high-water mark that forgets slowly: it stands in for the p90 of few observations.
Micros recent_high(Micros seen, Micros now) { return std::max(now, seen * 7 / 8); }

class EventApplier {
 public:
  explicit EventApplier(PoolState& state) : state_(state), index_(*state.index) {}

  // ---- the pool and its devices --------------------------------------------------------------

  void operator()(const PoolConfigured& e) {
    const TideSpec& tide = state_.spec.tide;
    const bool same_slots = tide.derive == e.spec.tide.derive && tide.slot == e.spec.tide.slot &&
                            tide.lead == e.spec.tide.lead;
    const bool same_mode = state_.spec.scale.mode == e.spec.scale.mode;
    const bool same_teams = state_.spec.teams == e.spec.teams;
    const bool is_new = !state_.configured;
    const bool same_promises = has_same_promises(state_.spec, e.spec);
    state_.spec = e.spec;
    state_.configured = true;
    if (!same_teams) adopt_teams(state_);
    refresh_start_timers(state_);
    // Later stages come by their own command, which checks (F8).
    if (is_new) begin_stage(state_, {e.spec.adoption.begin, "the pool file", {}});
    if (!same_slots) state_.tide = TideBook();  // what was counted by others says nothing
    for (ServiceState& service : state_.services) {
      if (same_mode || service.spec.scale) continue;
      service.above_since = service.below_since = Time::never();  // of another meaning
      service.needed_while_low = 0;
    }
    if (!same_promises) judge_promises_anew(state_);
    refresh_tide_timer(state_);
    index_.victims.touch_all();
    index_.placement.reset();  // what devices may give depends on the specification
    index_.agenda.roles = true;
    mark_waiting(state_);
    for (const ServiceState& service : state_.services) {
      if (!service.removed) index_.agenda.services.insert(service.id.value);
    }
  }

  void operator()(const NodeJoined& e) {
    index_.agenda.roles = true;
    if (const auto known = find_node(state_, e.spec.name)) {
      NodeState& node = state_.nodes[known->value];
      node.up = node.reachable = true;
      node.cpu_milli = e.spec.cpu_milli;
      node.memory = e.spec.memory;
      refresh_node(*known);
      for (const auto& [task, plan] : state_.plans) index_.agenda.plans.insert(task);
      return;
    }
    const NodeId id = add_node(state_, e.spec);
    refresh_node(id);
  }

  void operator()(const NodeUnreachable& e) { set_reachable(e.node, Reach::unreachable); }
  void operator()(const NodeLost& e) {
    ++state_.adoption.seen.faults;
    const NodeId id = set_reachable(e.node, Reach::lost);
    // Confirmed gone: what ran there has ended, and nobody else will report it.
    std::vector<TaskId> gone;
    for_devices(id, [&](DeviceId d) {
      for (const Tenant& t : state_.device(d).tenants) gone.push_back(t.task);
    });
    std::sort(gone.begin(), gone.end());
    gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
    for (const TaskId member : gone) {
      TaskState& task = state_.tasks.at(member);
      if (has_part_on_live_node(task)) {
        // A gang's other parts run until their end is confirmed; what they hold is not free yet.
        if (task.stop_reason != StopReason::cancelled) {
          task.stop_reason = StopReason::device_failed;
        }
        index_.agenda.attention.insert(member);
      } else {
        end_by_loss(task, "node " + e.node + " was lost");
      }
    }
  }

  void operator()(const DeviceHealthChanged& e) {
    const DeviceId id = device_at(e.node, e.index);
    if (e.health == DeviceHealth::failed) ++state_.adoption.seen.faults;
    state_.devices[id.value].health = e.health;
    state_.devices[id.value].health_detail = e.detail;
    index_.agenda.roles = true;
    index_.agenda.devices.insert(id);
    refresh_device(state_, id);
  }

  void operator()(const ForeignMemoryChanged& e) {
    note_foreign_memory(state_, device_at(e.node, e.index), e.used);
  }

  // ---- people --------------------------------------------------------------------------------

  void operator()(const TaskSubmitted& e) {
    const auto tier = find_tier(state_.spec, e.spec.tier);
    NEAP_CHECK(tier.has_value());
    const TaskState& task = add_task(state_, e.spec, *tier);
    index_.agenda.admit.insert(task.id);
    note_submission(state_, e.spec);
  }

  void operator()(const TaskCancelRequested& e) {
    TaskState& task = state_.tasks.at(*find_live_task(state_, e.name));
    if (task.phase == Phase::waiting) {
      task.detail = "cancelled by " + e.by;
      change_phase(state_, task, Phase::cancelled);
      return;
    }
    task.stop_reason = StopReason::cancelled;
    index_.agenda.attention.insert(task.id);
  }

  void operator()(const ServiceSubmitted& e) {
    add_service(state_, e.spec);
    mark_waiting(state_);  // where replicas may be follows from what all of them need at most
    note_submission(state_, e.spec, *find_tier(state_.spec, e.spec.tier));
  }

  void operator()(const ServiceRemoveRequested& e) {
    const ServiceId id = *find_live_service(state_, e.name);
    state_.services[id.value].removed = true;
    index_.service_names.erase(e.name);
    index_.agenda.services.insert(id.value);
    note_service_changed(state_, id);
  }

  void operator()(const ServiceScaled& e) {
    ServiceState& service = state_.services[find_live_service(state_, e.name)->value];
    service.spec.min_replicas = e.min_replicas;
    service.spec.max_replicas = e.max_replicas;
    mark_waiting(state_);
    if (service.roll) {  // whichever version is left
      service.roll->before.min_replicas = e.min_replicas;
      service.roll->before.max_replicas = e.max_replicas;
    }
    index_.agenda.services.insert(service.id.value);
  }

  void operator()(const ServiceMeasured& e) {
    ServiceState& service = state_.services[find_live_service(state_, e.name)->value];
    const bool gap = service.last_sample == Time::never() ||
                     state_.now - service.last_sample > scale_of(state_, service).stale_after;
    note_shortage(state_, service, gap ? Micros(0) : state_.now - service.last_sample);
    note_signals(state_, service, e);
    if (service.wake) index_.agenda.services.insert(service.id.value);
    if (!e.in_use) return;
    service.was_short = is_short(state_, service, state_.now);
    index_.agenda.services.insert(service.id.value);
  }

  void operator()(const PauseRequested& e) {
    note_pause_in_drill(state_);
    set_pause(state_, {true, e.by, e.why, state_.now});
  }

  void operator()(const ResumeRequested& e) {
    note_resume_in_drill(state_);
    set_pause(state_, {false, e.by, {}, state_.now});
  }

  void operator()(const DrillStarted& e) { begin_drill(state_, e); }
  void operator()(const DrillStopRequested& e) { withdraw_drill(state_, "stopped by " + e.by); }
  void operator()(const AdoptionChangeRequested& e) { begin_stage(state_, e); }

  void operator()(const TimerFired&) {}

  // ---- backends ------------------------------------------------------------------------------

  void operator()(const TaskStarted& e) {
    TaskState& task = reporter(e.stamp);
    task.started_at = task.captured = state_.now;
    if (task.first_started == Time(0)) task.first_started = state_.now;
    expect_checkpoint(task);
    note_started_in_drill(state_, task);
    if (task.phase == Phase::starting) change_phase(state_, task, Phase::running);
    touch_nodes(task);
  }

  void operator()(const ReplicaHealthy& e) {
    TaskState& task = reporter(e.stamp);
    task.ready = true;
    const bool counts = task.service.valid() && !came_for_drill(state_, task);
    if (counts && task.ready_at < task.placed_at) note_loaded(state_, task);
    if (task.ready_at < task.placed_at) task.ready_at = state_.now;
    if (task.service.valid()) {
      state_.services[task.service.value].failures = 0;
      note_service_changed(state_, task.service);
    }
    note_ready_in_drill(state_, task);
    refresh_timer(state_, task);
  }

  void operator()(const ReplicaUnhealthy& e) {
    TaskState& task = reporter(e.stamp);
    task.ready = false;
    task.detail = e.detail;
    if (task.phase == Phase::running) task.stop_reason = StopReason::unhealthy;
    index_.agenda.attention.insert(task.id);
    refresh_timer(state_, task);
  }

  void operator()(const ContractGreeting& e) {
    TaskState& task = reporter(e.stamp);
    task.on_demand_seen = e.on_demand;
    touch_nodes(task);
  }

  void operator()(const StepsReported& e) {
    TaskState& task = reporter(e.stamp);
    if (task.last_step < e.last && task.captured == task.started_at) {
      const Micros since_placed = state_.now - e.busy - task.placed_at;
      if (since_placed.value > 0 && task.seen_restore.value == 0) {
        task.seen_restore = since_placed;
        observe(state_, task, Observation::restore, since_placed.value);
        touch_nodes(task);
      }
    }
    task.last_step = std::max(task.last_step, e.last);
    end_loading(state_, task);
  }

  void operator()(const RequestsServed& e) {
    TaskState* task = find_by_allocation(state_, e.allocation);
    if (task != nullptr && task->service.valid()) note_answers(state_, *task, e);
  }

  void operator()(const MemoryObserved& e) {
    observe_memory(state_, *find_by_allocation(state_, e.allocation), e.peak);
  }

  void operator()(const CheckpointDurable& e) {
    TaskState& task = reporter(e.stamp);
    // Only what is durable is progress: a task that fails at one step for ever replays the steps
    // before it each time, and must still run out of restarts.
    if (e.step > task.durable_step || !task.spec.contract.sdk) task.restarts = 0;
    task.durable_step = e.step;
    task.last_step = std::max(task.last_step, e.step);
    task.checkpoint_path = e.path;
    // A clock that runs ahead, or a file from before this start, must not move work about.
    task.captured = std::clamp(e.captured, task.started_at, state_.now);
    if (e.save.value > 0) task.seen_save = recent_high(task.seen_save, e.save);
    if (e.stall.value > 0) task.seen_stall = recent_high(task.seen_stall, e.stall);
    task.missed = 0;
    end_loading(state_, task);
    expect_checkpoint(task);
    if (task.phase == Phase::yielding) index_.agenda.attention.insert(task.id);
    refresh_timer(state_, task);
    touch_nodes(task);
  }

  void operator()(const YieldAcknowledged& e) { reporter(e.stamp); }

  void operator()(const ContractBroken& e) { reporter(e.stamp).detail = e.detail; }

  void operator()(const StartFailed& e) {
    TaskState& task = reporter(e.stamp);
    note_end(state_, task, Ending::failed);
    if (task.service.valid()) ++state_.services[task.service.value].failures;
    note_replica_failed(state_, task, "could not be started: " + e.detail);
    if (task.stop_reason == StopReason::cancelled) {
      end_allocation(state_, task, Phase::cancelled, "cancelled");
      return;
    }
    restart_or_fail(state_, task, "could not be started: " + e.detail);
  }

  void operator()(const WaitExpected& e) {
    const std::size_t tier = find_tier(state_.spec, e.tier)->value;
    if (state_.expected_waits.size() <= tier) state_.expected_waits.resize(tier + 1);
    if (state_.expected_waits[tier] != e.wait) index_.victims.touch_all();
    state_.expected_waits[tier] = e.wait;
    index_.agenda.deadlines = true;
  }
  void operator()(const ServiceReplaced& e) {
    const ServiceId id = *find_live_service(state_, e.spec.name);
    replace_version(state_, state_.services[id.value], e);
  }
  void operator()(const PipelineSubmitted& e) { submit_pipeline(state_, e.spec); }
  void operator()(const PipelineCancelRequested& e) { cancel_pipeline(state_, e); }
  void operator()(const MetricsRead& e) { take_metrics(state_, e); }

  void operator()(const PlacementLearned& e) {
    state_.basis = {state_.basis.version + 1, e.seen, e.kinds, e.table};
  }

  void operator()(const TaskExited& e) {
    TaskState& task = reporter(e.stamp);
    task.exit_code = e.code;
    task.exit_signal = e.signal;
    const bool yielded = e.signal == 0 && e.code == 75 && task.spec.contract.any();
    if (yielded && !task.spec.contract.sdk && !task.spec.contract.watch) {
      task.captured = state_.now;  // with signals alone, exit 75 is the word that it is saved
    }
    note_end(state_, task, ending_of(e, task));
    observe_end(state_, task);
    note_lent_use(state_, task, e.signal == 0 && e.code == 0 ? Saved::all : Saved::captured);
    keep_progress(task, yielded);
    if (task.service.valid()) {
      note_left(state_, task);
      end_replica(task, e);
    } else {
      end_training(task, e, yielded);
    }
  }

 private:
  enum class Reach { unreachable, lost };

  template <class Visit>
  void for_devices(NodeId id, Visit&& visit) {
    const NodeState node = state_.node(id);
    for (std::int32_t i = 0; i < node.count; ++i) {
      visit(DeviceId(node.first.value + static_cast<std::uint32_t>(i)));
    }
  }

  void refresh_node(NodeId id) {
    for_devices(id, [&](DeviceId d) { refresh_device(state_, d); });
  }

  NodeId set_reachable(const std::string& name, Reach reach) {
    const NodeId id = *find_node(state_, name);
    state_.nodes[id.value].reachable = false;
    if (reach == Reach::lost) state_.nodes[id.value].up = false;
    index_.agenda.roles = true;
    refresh_node(id);
    return id;
  }

  bool has_part_on_live_node(const TaskState& task) const {
    return std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
      return state_.node(state_.device(slot.device).node).up;
    });
  }

  void touch_nodes(const TaskState& task) {
    for (const Slot& slot : task.slots) index_.victims.touch(state_.device(slot.device).node);
  }

  DeviceId device_at(const std::string& node, std::int32_t index) const {
    const NodeState& n = state_.node(*find_node(state_, node));
    NEAP_CHECK(index >= 0 && index < n.count);
    return DeviceId(n.first.value + static_cast<std::uint32_t>(index));
  }

  TaskState& reporter(const ReportStamp& stamp) {
    TaskState* task = find_by_allocation(state_, stamp.source);
    NEAP_CHECK(task != nullptr);
    task->report_epoch = stamp.epoch;
    task->report_sequence = stamp.sequence;
    return *task;
  }

  void expect_checkpoint(TaskState& task) {
    const ContractSpec& c = task.spec.contract;
    const bool seen_by_pool = (c.sdk || c.watch) && c.interval.value > 0;
    task.checkpoint_due =
        seen_by_pool ? state_.now + c.interval + state_.spec.preempt.grace : Time::never();
  }

  // What became durable counts as done; the rest since then is lost, unless the task had saved
  // all of it, finished, or was thrown away by its owner.
  void keep_progress(TaskState& task, bool yielded) {
    // One that was stopped before it ran has the times of the allocation before.
    if (task.phase == Phase::starting || task.started_at < task.placed_at) return;
    task.done += progress_of(task, task.captured - task.started_at);
    const bool finished = task.exit_signal == 0 && task.exit_code == 0;
    const bool all_saved = yielded && task.last_step <= task.durable_step;
    const bool unwanted = task.stop_reason == StopReason::cancelled;
    if (!task.service.valid() && !finished && !all_saved && !unwanted) {
      task.lost += state_.now - task.captured;
      if (task.asked_to_yield) state_.adoption.seen.lost += state_.now - task.captured;
    }
    task.last_step = task.durable_step;
  }

  void end_replica(TaskState& task, const TaskExited& e) {
    ServiceState& service = state_.services[task.service.value];
    const bool asked = task.phase == Phase::stopping || task.phase == Phase::yielding;
    if (!asked) {
      // Whoever has served and dies is one failure, however many die at once: they could start.
      const bool served = task.ready_at >= task.placed_at;
      service.failures = served ? std::max(service.failures, 1) : service.failures + 1;
      note_replica_failed(state_, task, exit_text(e));
    }
    end_allocation(state_, task, asked ? Phase::finished : Phase::failed,
                   asked ? e.detail : exit_text(e));
  }

  void end_training(TaskState& task, const TaskExited& e, bool yielded) {
    const StopReason reason = task.stop_reason;
    if (reason == StopReason::cancelled) {
      end_allocation(state_, task, Phase::cancelled, "cancelled");
    } else if (reason == StopReason::admission_revoked) {
      end_allocation(state_, task, Phase::failed,
                     "admission revoked: " + std::to_string(task.missed) +
                         " checkpoints in a row were overdue");
    } else if (e.signal == 0 && e.code == 0) {
      end_allocation(state_, task, Phase::finished, {});
    } else if (reason == StopReason::resized) {
      ++task.resizes;  // its own devices, or more: it gives nothing up for others
      end_allocation(state_, task, Phase::waiting, {});
    } else if (reason == StopReason::moved) {
      count_interruption(task);
      end_allocation(state_, task, Phase::waiting, {});
    } else if (reason == StopReason::preempted || reason == StopReason::guard_restored ||
               reason == StopReason::adoption || (yielded && task.asked_to_yield)) {
      // Withdrawn too late: it left because it was asked to. SIGTERM cannot be taken back at all.
      count_preemption(task);
      end_allocation(state_, task, Phase::waiting, {});
    } else if (reason == StopReason::device_failed || (yielded && made_progress(task))) {
      end_allocation(state_, task, Phase::waiting, {});
    } else if (yielded) {
      restart_or_fail(state_, task, "yielded unasked, with nothing new saved");
    } else if (e.signal == 0 && task.captured == task.started_at) {
      // A program that fails by itself before it saved anything would only fail again.
      end_allocation(state_, task, Phase::failed, exit_text(e));
    } else {
      restart_or_fail(state_, task, exit_text(e));
    }
  }

  // Whether this allocation saved anything; a task that reports nothing gets the benefit of the
  // doubt once it has run for a checkpoint interval.
  [[nodiscard]] bool made_progress(const TaskState& task) const {
    if (task.spec.contract.sdk || task.spec.contract.watch) return task.captured > task.started_at;
    return state_.now - task.started_at >= state_.spec.preempt.checkpoint_interval;
  }

  // A move sets a task back by its restore and no more, so it pleads for nothing later; what it may
  // be asked for in a day is used up by it all the same.
  void count_interruption(TaskState& task) {
    const std::int64_t day = state_.now.us / hours(24).value;
    if (task.preemption_day != day) {
      task.preemption_day = day;
      task.preemptions_today = 0;
    }
    ++task.preemptions_today;
  }

  void count_preemption(TaskState& task) {
    ++task.preemptions;
    set_due(state_, task);
    count_interruption(task);
  }

  void end_by_loss(TaskState& task, const std::string& detail) {
    task.exit_code = -1;
    task.exit_signal = 0;
    const StopReason reason = task.stop_reason;
    note_lent_use(state_, task, Saved::captured);
    keep_progress(task, false);
    if (task.service.valid()) {
      end_allocation(state_, task, Phase::failed, detail);
    } else if (reason == StopReason::cancelled) {
      end_allocation(state_, task, Phase::cancelled, "cancelled");
    } else if (reason == StopReason::admission_revoked) {
      end_allocation(state_, task, Phase::failed, "admission revoked");
    } else {
      end_allocation(state_, task, Phase::waiting, detail);
    }
  }

  PoolState& state_;
  PoolIndex& index_;
};

}  // namespace

void apply(PoolState& state, Time now, const Event& event) {
  NEAP_CHECK(now >= state.now);
  state.now = now;
  set_check_sequence(++state.sequence);
  std::visit(EventApplier(state), event);
}

}  // namespace neap
