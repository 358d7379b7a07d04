// What each decision does to the state.
#include <algorithm>

#include "core/apply_chain.h"
#include "core/apply_parts.h"
#include "core/engine.h"
#include "core/model/check.h"
#include "core/model/team_index.h"
#include "core/rules/admit.h"
#include "core/rules/adoption.h"
#include "core/rules/lane.h"
#include "core/rules/scale.h"
#include "core/rules/signals.h"
#include "core/rules/starts.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

class DecisionApplier {
 public:
  explicit DecisionApplier(PoolState& state) : state_(state), index_(*state.index) {}

  void operator()(const TaskAdmitted& d) {
    TaskState& task = state_.tasks.at(d.task);
    index_.agenda.admit.erase(d.task);
    task.dedicated = d.dedicated;
    task.releasable = d.releasable;
    task.lane = d.lane;
    task.deadline = d.deadline;
    task.shape = intern_shape(state_, shape_of(state_.spec, task));
    note_arrival(state_, task.spec.request);
    count_arrival(state_, state_.shape(task.shape));
    refresh_queue(state_, task);
  }

  void operator()(const TaskRefused& d) {
    TaskState& task = state_.tasks.at(d.task);
    task.detail = d.condition + ": " + d.detail;
    change_phase(state_, task, Phase::refused);
  }

  void operator()(const TaskPlaced& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(task.phase == Phase::waiting);
    NEAP_CHECK(d.allocation.value == state_.next_allocation);
    state_.next_allocation = d.allocation.value + 1;
    note_placed_in_drill(state_, task, d.slots);
    drop_plan(state_, d.task);
    task.allocation = d.allocation;
    task.slots = d.slots;
    task.placed_at = state_.now;
    task.report_epoch = 0;
    task.report_sequence = 0;
    task.stop_reason = StopReason::none;
    task.asked_to_yield = false;
    task.reserved = 0;
    task.lane_until = Time(0);
    if (task.forced && is_on_lane(d.slots)) {
      task.lane_until = state_.now + lane_stay(state_.spec, task.spec);
    }
    task.detail.clear();                        // how it ended before is in its trail
    if (!d.lender.valid()) note_passing(task);  // in time for the lender, it passes nobody
    change_phase(state_, task, Phase::starting);
    note_chain_begun(state_, task);
    if (d.lender.valid()) lend(task, d);
    occupy(state_, task);
    task.seen_memory = MiB(0);
    ++state_.adoption.seen.starts;
    begin_loading(state_, task);
  }

  void operator()(const LoadingEnded& d) { end_loading(state_, state_.tasks.at(d.task)); }

  void operator()(const PreemptionPlanned& d) {
    claim({d.task, d.slots, d.victims, state_.now, d.needed_by, PlanKind::preemption, {}});
  }

  void operator()(const RoomReserved& d) {
    ++state_.tasks.at(d.task).reserved;
    claim({d.task, d.slots, d.victims, state_.now, d.expected, PlanKind::reservation, {}});
  }

  void operator()(const MovePlanned& d) {
    const TaskState& task = state_.tasks.at(d.task);
    Plan plan{d.task, d.slots, {}, state_.now, d.expected, PlanKind::move, d.for_task, {}};
    if (d.slots.size() != task.slots.size()) {
      plan.kind = PlanKind::resize;  // it takes some of its own along: it leaves them to itself
      plan.victims = {{d.task, ReleaseMode::boundary, d.expected, 0}};
    }
    claim(std::move(plan));
  }

  void operator()(const LookScheduled& d) {
    switch (d.look) {
      case Look::room:
        state_.room_look_at = d.at;
        break;
      case Look::consolidation:
        state_.consolidation_look_at = d.at;
        break;
      case Look::growth:
        state_.growth_look_at = d.at;
        break;
      case Look::lane:
        state_.lane_look_at = d.at;
        break;
      case Look::deadlines:
        state_.deadlines_look_at = d.at;
        break;
    }
    refresh_look(state_, d.look);
  }

  void operator()(const PreemptionDropped& d) { drop_plan(state_, d.task); }

  void operator()(const YieldAsked& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(task.phase == Phase::running && task.allocation == d.allocation);
    task.yield_mode = d.mode;
    task.yield_by = d.release_by;
    task.stop_reason = d.reason;
    task.asked_to_yield = true;
    ++state_.adoption.seen.yields;
    change_phase(state_, task, Phase::yielding);
    tell_plans_of(task);
    note_asked_in_drill(state_, task);
    touch_nodes(task);
  }

  void operator()(const YieldWithdrawn& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(task.phase == Phase::yielding);
    note_withdrawn_in_drill(state_, task);
    task.stop_reason = StopReason::none;
    withdraw_yield(state_.adoption);
    change_phase(state_, task, Phase::running);
    if (index_.moving.contains(task.id)) index_.agenda.plans.insert(task.id);
    touch_nodes(task);
  }

  void operator()(const CheckpointAsked& d) {
    TaskState& task = state_.tasks.at(d.task);
    task.missed = d.missed;
    task.checkpoint_due = state_.now + task.spec.contract.interval + state_.spec.preempt.grace;
    refresh_timer(state_, task);
  }

  void operator()(const StopAsked& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(holds_devices(task.phase));
    if (d.reason == StopReason::contract_breach) note_forced_in_drill(state_, task);
    if (d.reason == StopReason::unhealthy) {
      note_replica_failed(state_, task,
                          task.detail.empty() ? "did not become healthy in its time" : task.detail);
    }
    note_stop(state_.adoption, d.reason);
    const bool for_less = d.reason == StopReason::scaled_down;
    if (task.service.valid() && (for_less || d.reason == StopReason::drill_over)) {
      begin_windows(state_, state_.services[task.service.value]);
      if (for_less) note_given(state_, task);
    }
    task.stop_reason = d.reason;
    task.kill_at = d.kill_at;
    task.ready = false;
    change_phase(state_, task, Phase::stopping);
    touch_nodes(task);
  }

  void operator()(const KillAsked& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(holds_devices(task.phase));
    if (task.phase == Phase::running && d.reason == StopReason::preempted) {
      task.yield_mode = ReleaseMode::kill;
      task.yield_by = state_.now;
      note_asked_in_drill(state_, task);
    }
    task.stop_reason = d.reason;
    task.ready = false;
    // Asked again until its end is confirmed: nothing else frees the devices.
    task.kill_at = state_.now + state_.spec.preempt.term_grace;
    change_phase(state_, task, Phase::stopping);
    touch_nodes(task);
  }

  void operator()(const BackoffEnded& d) {
    TaskState& task = state_.tasks.at(d.task);
    task.not_before = std::min(task.not_before, state_.now);
    refresh_queue(state_, task);
    refresh_timer(state_, task);
  }

  void operator()(const ReplicaAdded& d) {
    ServiceState& service = state_.services[d.service.value];
    NEAP_CHECK(d.task == state_.tasks.next_id());
    TaskState& task = add_task(state_, replica_spec(service), service.tier);
    task.service = service.id;
    task.version = service.version;
    set_due(state_, task);
    task.not_before = state_.now + replica_backoff(service);
    if (service.failures > 0) {
      task.detail = std::to_string(service.failures) +
                    " starts in a row ended unasked; `neap ps --all` shows how";
    }
    task.shape = intern_shape(state_, shape_of(state_.spec, task));
    note_arrival(state_, task.spec.request);
    service.replicas.push_back(task.id);
    ++service.next_replica;
    service.above_since = service.below_since = service.idle_since = Time::never();
    service.wake = false;
    if (d.cause == ReplicaCause::least) note_added_in_drill(state_, task);
    refresh_queue(state_, task);
    refresh_timer(state_, task);
  }

  void operator()(const ReplicaDropped& d) {
    TaskState& task = state_.tasks.at(d.task);
    task.detail = d.why;
    state_.services[d.service.value].below_since = Time::never();
    change_phase(state_, task, Phase::cancelled);
  }

  void operator()(const RolesAssigned& d) {
    index_.agenda.guard = true;
    std::vector<DeviceId> before;
    for (std::uint32_t i = 0; i < state_.devices.size(); ++i) {
      const DeviceId id(i);
      if (state_.device(id).role == Role::dedicated) continue;
      const bool guard = std::binary_search(d.guard.begin(), d.guard.end(), id);
      const bool buffer = std::binary_search(d.buffer.begin(), d.buffer.end(), id);
      const bool lane = std::binary_search(d.lane.begin(), d.lane.end(), id);
      set_role(id, guard ? Role::guard : buffer ? Role::buffer : lane ? Role::lane : Role::core);
    }
    judge_lane_anew();
  }

  void operator()(const DemandCounted& d) {
    if (close_slots(state_, d)) index_.agenda.roles = true;
    refresh_tide_timer(state_);
  }

  void operator()(const StartBoundSet& d) {
    TaskState& task = state_.tasks.at(d.task);
    forget_promise(state_, task);
    task.bound = d.code;
    task.forced_at = d.forced_at;
    task.start_by = d.start_by;
    task.ahead = d.ahead;
    refresh_queue(state_, task);
  }

  void operator()(const TaskForced& d) {
    TaskState& task = state_.tasks.at(d.task);
    task.forced = true;
    refresh_queue(state_, task);
  }

  // It waits: nothing is counted of it in its tier but its place in the queue.
  void operator()(const TierChanged& d) {
    TaskState& task = state_.tasks.at(d.task);
    NEAP_CHECK(task.phase == Phase::waiting && task.shape.valid());
    leave_queue(state_, task);
    task.tier = d.tier;
    task.shape = intern_shape(state_, shape_of(state_.spec, task));
    refresh_queue(state_, task);
  }

  void operator()(const StageEntered& d) { enter_stage(state_, d); }
  void operator()(const StageEnded& d) { end_stage(state_, d); }
  void operator()(const ServiceRolled& d) { settle_roll(state_, d); }

  void operator()(const DeviceExcluded& d) { set_excluded(d.device, true); }
  void operator()(const DeviceReadmitted& d) { set_excluded(d.device, false); }

  void operator()(const WaitReasonChanged& d) { state_.wait_codes[d.shape.value] = d.code; }

  void operator()(const ConditionChanged& d) {
    if (d.active) {
      state_.conditions[d.condition] = d.detail;
    } else {
      state_.conditions.erase(d.condition);
    }
  }

  void operator()(const PreemptRetryScheduled& d) {
    if (!d.shape.valid()) {
      state_.guard_retry_at = d.at;
      set_timer(state_, TimerKind::guard, 0, d.at);
      return;
    }
    state_.preempt_retry_at[d.shape.value] = d.at;
    set_timer(state_, TimerKind::shape, d.shape.value, d.at);
  }

  void operator()(const DrillPaused&) { pause_drill(state_); }
  void operator()(const DrillResumed&) { resume_drill(state_); }
  void operator()(const DrillWithdrawn& d) { withdraw_drill(state_, d.why); }
  void operator()(const DrillEnded& d) { end_drill(state_, d); }

 private:
  void claim(Plan made) {
    NEAP_CHECK(!state_.plans.contains(made.task));
    const std::set<TaskId> others = plans_waiting_for(state_, made.victims);
    refresh_claims_of(state_, others, -1);
    const Plan& plan = state_.plans[made.task] = std::move(made);
    for (const Victim& victim : plan.victims) {
      index_.plans_of_victim[victim.task].insert(plan.task);
      touch_nodes(state_.tasks.at(victim.task));
    }
    refresh_claims_of(state_, others, +1);
    refresh_claims(state_, plan, +1);
    count_in_group(state_, state_.tasks.at(plan.task), plan.slots, +1);
    note_plan(state_, plan);
    refresh_devices_of(state_, others);
    for (const Slot& slot : plan.slots) refresh_device(state_, slot.device);
    refresh_queue(state_, state_.tasks.at(plan.task));
    refresh_team(state_, state_.tasks.at(plan.task));
  }

  // Nothing that it has of the lender's is held for the lender as well.
  void lend(const TaskState& task, const TaskPlaced& d) {
    Plan& plan = state_.plans.at(d.lender);
    NEAP_CHECK(plan.kind == PlanKind::reservation);
    refresh_claims(state_, plan, -1);
    const Victim victim{task.id, ReleaseMode::finish, d.leaves_by, 0};
    plan.victims.insert(
        std::lower_bound(plan.victims.begin(), plan.victims.end(), victim,
                         [](const Victim& a, const Victim& b) { return a.task < b.task; }),
        victim);
    plan.lent_to.insert(std::lower_bound(plan.lent_to.begin(), plan.lent_to.end(), task.id),
                        task.id);
    index_.plans_of_victim[task.id].insert(plan.task);
    refresh_claims(state_, plan, +1);
  }

  // Who waits for its end is to know that it was asked.
  void tell_plans_of(const TaskState& task) {
    const auto found = index_.plans_of_victim.find(task.id);
    if (found == index_.plans_of_victim.end()) return;
    for (const TaskId id : found->second) {
      Plan& plan = state_.plans.at(id);
      if (plan.kind != PlanKind::reservation) continue;
      for (Victim& victim : plan.victims) {
        if (victim.task != task.id) continue;
        victim.mode = task.yield_mode;
        victim.release_by = task.yield_by;
      }
    }
  }

  // Those of its tier and of heavier ones that were submitted before it are passed by it.
  void note_passing(const TaskState& task) {
    if (task.dedicated || task.purpose == Purpose::inference) return;
    auto& newest = state_.newest_placed;
    if (newest.size() <= task.tier.value) newest.resize(task.tier.value + std::size_t{1});
    newest[task.tier.value] = std::max(newest[task.tier.value], task.submitted);
  }

  bool is_on_lane(const std::vector<Slot>& slots) const {
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return state_.device(slot.device).role == Role::lane;
    });
  }

  // Who did not fit may fit now.
  void judge_lane_anew() {
    std::vector<TaskId> anew;
    for (const WaitKey& waiting : index_.promised) {
      if (state_.tasks.at(waiting.task).bound == BoundCode::too_large) {
        anew.push_back(waiting.task);
      }
    }
    for (const TaskId id : anew) judge_promise_anew(state_, state_.tasks.at(id));
  }

  void touch_nodes(const TaskState& task) {
    for (const Slot& slot : task.slots) index_.victims.touch(state_.device(slot.device).node);
  }

  bool has_training(const DeviceState& device) const {
    return std::any_of(device.tenants.begin(), device.tenants.end(), [&](const Tenant& t) {
      return state_.tasks.at(t.task).purpose != Purpose::inference;
    });
  }

  void set_role(DeviceId id, Role role) {
    DeviceState& device = state_.devices[id.value];
    if (device.role == role) return;
    if (has_training(device)) {
      index_.training_on_guard += role == Role::guard ? 1U : 0U;
      index_.training_on_guard -= device.role == Role::guard ? 1U : 0U;
    }
    device.role = role;
    // The cost of a task that spans nodes changes on all of them.
    for (const Tenant& tenant : device.tenants) touch_nodes(state_.tasks.at(tenant.task));
    refresh_device(state_, id);
  }

  void set_excluded(DeviceId id, bool excluded) {
    DeviceState& device = state_.devices[id.value];
    device.excluded = excluded;
    device.foreign_low_since = Time::never();
    set_timer(state_, TimerKind::device, id.value, Time::never());
    index_.agenda.roles = true;
    refresh_device(state_, id);
  }

  PoolState& state_;
  PoolIndex& index_;
};

}  // namespace

void apply(PoolState& state, Time now, const Decision& decision) {
  NEAP_CHECK(now >= state.now);
  state.now = now;
  set_check_sequence(++state.sequence);
  std::visit(DecisionApplier(state), decision);
}

}  // namespace neap
