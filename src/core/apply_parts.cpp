#include "core/apply_parts.h"

#include <algorithm>
#include <bit>

#include "core/apply_chain.h"
#include "core/model/check.h"
#include "core/model/codec.h"
#include "core/model/team_index.h"
#include "core/rules/chain.h"
#include "core/rules/starts.h"

namespace neap {

namespace {

bool is_training(const TaskState& task) { return task.purpose != Purpose::inference; }

void count_guard_training(PoolState& state, const DeviceState& device, int change) {
  if (device.role != Role::guard) return;
  std::uint32_t training = 0;
  for (const Tenant& tenant : device.tenants) {
    training += is_training(state.tasks.at(tenant.task)) ? 1 : 0;
  }
  // The first training tenant makes the device count, the last one unmakes it.
  if (training == (change > 0 ? 1U : 0U)) {
    state.index->training_on_guard += static_cast<std::uint32_t>(change);
    state.index->agenda.guard = true;
  }
}

}  // namespace

namespace {
// It was asked to go on elsewhere and has left.
void note_place_claimed(PoolState& state, const TaskState& task) {
  if (state.index->moving.contains(task.id)) state.index->agenda.plans.insert(task.id);
}
}  // namespace

void change_phase(PoolState& state, TaskState& task, Phase phase) {
  if (task.phase == Phase::waiting) task.waited += state.now - task.phase_since;
  task.phase = phase;
  task.phase_since = state.now;
  if (has_ended(phase)) {
    auto& index = *state.index;
    index.task_names.erase(task.spec.name);
    index.agenda.admit.erase(task.id);
    index.ended.emplace(state.now, task.id);
    if (task.service.valid()) {
      auto& service = state.services[task.service.value];
      std::erase(service.replicas, task.id);
      index.agenda.services.insert(service.id.value);
      note_service_changed(state, service.id);
    }
    note_stage_ended(state, task);
    drop_plan(state, task.id);
  }
  if (phase == Phase::waiting) note_place_claimed(state, task);
  refresh_queue(state, task);
  refresh_timer(state, task);
  refresh_team(state, task);
  if (state.index->ended.size() > ended_tasks_kept) {
    const TaskId oldest = state.index->ended.begin()->second;
    state.index->ended.erase(state.index->ended.begin());
    state.tasks.forget(oldest);
  }
}

void occupy(PoolState& state, TaskState& task) {
  count_host(state, task, +1);
  count_in_group(state, task, task.slots, +1);
  count_weights(state, task, +1);
  for (const Slot& slot : task.slots) {
    DeviceState& device = state.devices[slot.device.value];
    const Tenant tenant{task.id, slot.share, slot.memory};
    const auto at =
        std::lower_bound(device.tenants.begin(), device.tenants.end(), tenant,
                         [](const Tenant& a, const Tenant& b) { return a.task < b.task; });
    device.tenants.insert(at, tenant);
    device.used_share += slot.share;
    device.used_memory += slot.memory;
    if (is_training(task)) count_guard_training(state, device, +1);
    refresh_device(state, slot.device);
  }
  state.index->allocations.emplace(task.allocation, task.id);
  ++state.index->running_by_tier[{task.tier, static_cast<std::uint8_t>(task.purpose)}];
}

void vacate(PoolState& state, TaskState& task) {
  // The plan this task was a victim of claims what it leaves; settled before others see it.
  count_host(state, task, -1);
  count_in_group(state, task, task.slots, -1);
  count_weights(state, task, -1);
  for (const Slot& slot : task.slots) {
    DeviceState& device = state.devices[slot.device.value];
    std::erase_if(device.tenants, [&](const Tenant& t) { return t.task == task.id; });
    device.used_share -= slot.share;
    device.used_memory -= slot.memory;
    if (is_training(task)) count_guard_training(state, device, -1);
  }
  leave_plans_of_victim(state, task.id);
  for (const Slot& slot : task.slots) refresh_device(state, slot.device);
  // Beside what plans hold nothing may have become free, and yet others may come now who would
  // not share a device with this one (A6).
  if (task.spec.request.share < whole_device) mark_waiting(state);
  const auto lane = static_cast<std::int64_t>(state.index->lane.size());
  if (lane < state.spec.fairness.lane) state.index->agenda.roles = true;
  // A device that training has left can stand in for one of the guard that it still holds.
  if (is_training(task) && state.index->training_on_guard > 0) state.index->agenda.roles = true;
  state.index->allocations.erase(task.allocation);
  const auto running =
      state.index->running_by_tier.find({task.tier, static_cast<std::uint8_t>(task.purpose)});
  NEAP_CHECK(running != state.index->running_by_tier.end());
  if (--running->second == 0) state.index->running_by_tier.erase(running);
}

std::set<TaskId> plans_waiting_for(const PoolState& state, const std::vector<Victim>& victims) {
  std::set<TaskId> plans;
  for (const Victim& victim : victims) {
    const auto found = state.index->plans_of_victim.find(victim.task);
    if (found != state.index->plans_of_victim.end()) {
      plans.insert(found->second.begin(), found->second.end());
    }
  }
  return plans;
}

void refresh_claims_of(PoolState& state, const std::set<TaskId>& plans, std::int32_t sign) {
  for (const TaskId task : plans) refresh_claims(state, state.plans.at(task), sign);
}

void refresh_devices_of(PoolState& state, const std::set<TaskId>& plans) {
  for (const TaskId task : plans) {
    for (const Slot& slot : state.plans.at(task).slots) refresh_device(state, slot.device);
  }
}

void leave_plans_of_victim(PoolState& state, TaskId victim) {
  const auto found = state.index->plans_of_victim.find(victim);
  if (found == state.index->plans_of_victim.end()) return;
  const std::set<TaskId> tasks = found->second;
  refresh_claims_of(state, tasks, -1);
  state.index->plans_of_victim.erase(found);
  for (const TaskId task : tasks) {
    Plan& plan = state.plans.at(task);
    std::erase_if(plan.victims, [&](const Victim& v) { return v.task == victim; });
    std::erase(plan.lent_to, victim);
    refresh_plan_timer(state, plan);
    state.index->agenda.plans.insert(task);
  }
  refresh_claims_of(state, tasks, +1);
  // Only now, with every plan's claim settled, may others see what became free.
  refresh_devices_of(state, tasks);
  // What is kept can be lent.
  if (std::any_of(tasks.begin(), tasks.end(),
                  [&](TaskId task) { return state.index->reserved.contains(task); })) {
    mark_waiting(state);
  }
}

void drop_plan(PoolState& state, TaskId task) {
  const auto found = state.plans.find(task);
  if (found == state.plans.end()) return;
  std::set<TaskId> others = plans_waiting_for(state, found->second.victims);
  others.erase(task);
  refresh_claims(state, found->second, -1);
  count_in_group(state, state.tasks.at(task), found->second.slots, -1);
  refresh_claims_of(state, others, -1);
  const Plan plan = std::move(found->second);
  state.plans.erase(found);
  forget_plan(state, plan);
  for (const Victim& victim : plan.victims) {
    const auto plans = state.index->plans_of_victim.find(victim.task);
    plans->second.erase(task);
    if (plans->second.empty()) state.index->plans_of_victim.erase(plans);
    for (const Slot& slot : state.tasks.at(victim.task).slots) {
      state.index->victims.touch(state.device(slot.device).node);
    }
  }
  refresh_claims_of(state, others, +1);
  for (const Slot& slot : plan.slots) refresh_device(state, slot.device);
  refresh_devices_of(state, others);
  refresh_queue(state, state.tasks.at(task));
  refresh_team(state, state.tasks.at(task));
}

void end_allocation(PoolState& state, TaskState& task, Phase phase, std::string detail) {
  note_left_in_drill(state, task, phase);
  vacate(state, task);
  end_loading(state, task);
  task.slots.clear();
  task.ready = false;
  task.stop_reason = StopReason::none;
  task.kill_at = Time::never();
  task.checkpoint_due = Time::never();
  task.missed = 0;
  task.detail = std::move(detail);
  if (phase == Phase::waiting) {
    judge_promise_anew(state, task);
    task.forced = false;
  }
  change_phase(state, task, phase);
}

std::string exit_text(const TaskExited& e) {
  std::string text = e.signal != 0 ? "ended by signal " + std::to_string(e.signal)
                                   : "exited with " + std::to_string(e.code);
  return e.detail.empty() ? text : text + ": " + e.detail;
}

void restart_or_fail(PoolState& state, TaskState& task, const std::string& detail) {
  ++task.restarts;
  if (task.service.valid() || task.restarts > state.spec.max_restarts) {
    // A replica is replaced by its service, which keeps the count and the pause.
    end_allocation(state, task, Phase::failed, detail);
    return;
  }
  task.not_before = state.now + seconds(std::int64_t{1} << std::min(task.restarts, 8));
  end_allocation(state, task, Phase::waiting, detail);
}

void judge_promise_anew(PoolState& state, TaskState& task) {
  forget_promise(state, task);
  task.bound = BoundCode::none;
  task.forced_at = task.start_by = Time::never();
  task.ahead = 0;
  refresh_promise(state, task);
}

void judge_promises_anew(PoolState& state) {
  state.tasks.for_each([&](const TaskState& task) {
    if (task.phase != Phase::waiting || !task.shape.valid()) return;
    judge_promise_anew(state, state.tasks.at(task.id));
  });
}

bool has_same_promises(const PoolSpec& a, const PoolSpec& b) {
  const auto terms = [](const PoolSpec& spec) {
    Encoder out;
    out.put(spec.fairness);
    out.put(spec.preempt);
    out.put(spec.tiers);
    return out.take();
  };
  return terms(a) == terms(b);
}

void set_due(const PoolState& state, TaskState& task) {
  if (const auto due = due_in_chain(state, task)) {
    task.due = *due;
    return;
  }
  const PreemptSpec& preempt = state.spec.preempt;
  const Micros wait = state.tier(task.tier).wait - preempt.compensation * task.preemptions;
  task.due = task.submitted + std::max(preempt.wait_min, wait);
}

TaskState& add_task(PoolState& state, TaskSpec spec, TierId tier) {
  TaskState& task = state.tasks.add();
  task.spec = std::move(spec);
  task.tier = tier;
  task.purpose = state.tier(tier).purpose;
  task.phase = Phase::waiting;
  task.submitted = task.phase_since = state.now;
  set_due(state, task);
  state.index->task_names[task.spec.name] = task.id;
  return task;
}

std::optional<TierId> find_tier(const PoolSpec& spec, std::string_view name) {
  for (std::size_t i = 0; i < spec.tiers.size(); ++i) {
    if (spec.tiers[i].name == name) return TierId(static_cast<std::uint8_t>(i));
  }
  return std::nullopt;
}

namespace {
void add_arrival(std::vector<Arrivals>& all, std::int32_t devices) {
  const auto at = std::lower_bound(all.begin(), all.end(), devices,
                                   [](const Arrivals& a, std::int32_t n) { return a.devices < n; });
  if (at != all.end() && at->devices == devices) {
    at->tasks += one_task;
  } else {
    all.insert(at, {devices, one_task});
  }
}
}  // namespace

void count_arrival(PoolState& state, const Shape& shape) {
  if (shape.dedicated || shape.purpose == Purpose::inference) return;
  const std::int64_t hour = state.now.us / hours(1).value;
  const std::int64_t passed = std::clamp<std::int64_t>(hour - state.arrivals_hour, 0, 62);
  for (Arrivals& arrivals : state.arrivals) arrivals.tasks >>= passed;
  std::erase_if(state.arrivals, [](const Arrivals& arrivals) { return arrivals.tasks == 0; });
  state.arrivals_hour = hour;
  add_arrival(state.arrivals, 0);
  if (shape.request.share == whole_device) add_arrival(state.arrivals, shape.request.count);
}

TaskState* find_by_allocation(PoolState& state, AllocationId allocation) {
  const auto found = state.index->allocations.find(allocation);
  if (found == state.index->allocations.end()) return nullptr;
  return state.tasks.find(found->second);
}

void note_arrival(PoolState& state, const Request& request) {
  note_demand(state.demand, request);
  // Before a table is learned, each time the demand seen has doubled.
  const auto seen = static_cast<std::uint64_t>(state.demand.seen);
  if (!state.basis.table.empty() || !std::has_single_bit(seen)) return;
  state.basis = {state.basis.version + 1, state.demand.seen, state.demand.kinds, {}};
}

}  // namespace neap
