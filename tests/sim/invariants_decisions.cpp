// What must hold of each decision at the moment it is made: checked on the second state, just
// before the decision is applied there.
#include <algorithm>

#include "core/rules/preempt.h"
#include "tests/sim/invariants.h"

namespace neap::sim {

namespace {

bool is_training(const TaskState& task) { return task.purpose != Purpose::inference; }

bool has_training(const PoolState& state, const DeviceState& device) {
  return std::any_of(device.tenants.begin(), device.tenants.end(), [&](const Tenant& tenant) {
    return is_training(state.tasks.at(tenant.task));
  });
}

bool is_slot(const std::vector<Slot>& slots, std::uint32_t device) {
  return std::any_of(slots.begin(), slots.end(),
                     [&](const Slot& slot) { return slot.device.value == device; });
}

bool inside_window(const DayWindow& window, Time now) {
  const Micros of_day(now.us % hours(24).value);
  if (window.from <= window.to) return window.from <= of_day && of_day < window.to;
  return of_day >= window.from || of_day < window.to;
}

bool is_lent(const PoolState& state, const TaskState& task) {
  if (std::any_of(state.plans.begin(), state.plans.end(), [&](const auto& plan) {
        const auto& lent = plan.second.lent_to;
        return std::find(lent.begin(), lent.end(), task.id) != lent.end();
      })) {
    return true;
  }
  return task.releasable &&
         std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
           return state.device(slot.device).role == Role::buffer;
         });
}

}  // namespace

void Invariants::check(const TaskPlaced& d) {
  const TaskState& task = second_.tasks.at(d.task);
  for (const Slot& slot : d.slots) {
    const DeviceState& device = second_.device(slot.device);
    if (!is_usable(second_, device)) {
      violated(task.spec.name, " is placed on ", device.uuid, ", which is not usable");
    }
    if (device.foreign + device.used_memory + slot.memory >
        device.memory - second_.spec.device_reserve) {
      violated(task.spec.name, " is placed on ", device.uuid, ", whose memory is taken");
    }
    if (task.dedicated != (device.role == Role::dedicated)) {
      violated(task.spec.name, " is placed in the wrong partition");
    }
  }
  if (is_training(task) && !task.dedicated) check_guard_kept(task, d.slots);
  if (d.lender.valid()) check_loan(task, d);
}

// D6: who has room that is kept for another ends before it is needed, or can be asked to leave.
void Invariants::check_loan(const TaskState& task, const TaskPlaced& d) {
  ++lent_;
  const auto plan = second_.plans.find(d.lender);
  if (plan == second_.plans.end() || plan->second.kind != PlanKind::reservation) {
    violated(task.spec.name, " is lent room that nobody keeps");
    return;
  }
  const auto work = remaining_work(task, now_);
  const auto& tenants = plan->second.victims;
  const bool ends_in_time =
      work && std::any_of(tenants.begin(), tenants.end(), [&](const Victim& v) {
        return v.release_by != Time::never() && now_ + *work <= v.release_by;
      });
  if (!ends_in_time && !task.releasable) {
    violated(task.spec.name, " is lent room that it does not leave in time");
  }
  if (task.tier < second_.tasks.at(d.lender).tier) {
    violated(task.spec.name, " is lent room of a lighter task");
  }
}

// D4: training never takes a guard device, nor leaves fewer devices free of training than the
// guard counts.
void Invariants::check_guard_kept(const TaskState& task, const std::vector<Slot>& slots) {
  bool takes_new = false;
  for (const Slot& slot : slots) {
    const DeviceState& device = second_.device(slot.device);
    if (device.role == Role::guard) violated(task.spec.name, " is placed on the guard");
    if (device.role == Role::buffer && !task.releasable) {
      violated(task.spec.name, " is placed on the buffer and cannot be released in time");
    }
    takes_new = takes_new || !has_training(second_, device);
  }
  if (!takes_new) return;
  std::int64_t without_training = 0;
  for (std::uint32_t i = 0; i < second_.devices.size(); ++i) {
    const DeviceState& device = second_.devices[i];
    const bool counts = device.role != Role::dedicated && is_usable(second_, device) &&
                        !has_training(second_, device) && !is_slot(slots, i);
    without_training += counts ? 1 : 0;
  }
  if (without_training < second_.spec.inference_guard_min) {
    violated(task.spec.name, " leaves ", without_training, " devices for a guard of ",
             second_.spec.inference_guard_min);
  }
}

// D3, POLICIES 1: nobody who is nearly done, nor inside a window, nor past its budget.
void Invariants::check_victim(const TaskState& victim, ReleaseMode mode) {
  if (mode == ReleaseMode::finish) return;
  const std::string& name = victim.spec.name;
  if (mode == ReleaseMode::kill && !second_.spec.preempt.break_glass) {
    violated(name, " is to be killed for capacity");
  }
  const Micros restore =
      victim.seen_restore.value > 0 ? victim.seen_restore : victim.spec.contract.restore;
  const auto work = remaining_work(victim, now_);
  if (work && *work <= restore) violated(name, " is to yield with W <= R");
  if (is_lent(second_, victim)) return;
  const Micros window = std::max(second_.spec.preempt.protect_min, restore * 9);
  if (now_ - victim.started_at < window) violated(name, " is to yield in its protected window");
  for (const DayWindow& declared : victim.spec.windows) {
    if (inside_window(declared, now_)) violated(name, " is to yield in its declared window");
  }
  const bool today = victim.preemption_day == now_.us / hours(24).value;
  if (today && victim.preemptions_today >= second_.spec.preempt.budget_per_day) {
    violated(name, " is to yield past its budget of the day");
  }
}

// PEERS: evict only after a placement was simulated, per device. Once the victims of all plans
// have left, each device carries what stays and all that is claimed of it.
void Invariants::check_room(TaskId task, const std::vector<Slot>& slots,
                            const std::vector<Victim>& victims) {
  std::vector<TaskId> leaving;
  std::vector<Slot> claimed = slots;
  for (const Victim& victim : victims) leaving.push_back(victim.task);
  for (const auto& [id, plan] : second_.plans) {
    claimed.insert(claimed.end(), plan.slots.begin(), plan.slots.end());
    for (const Victim& victim : plan.victims) leaving.push_back(victim.task);
  }
  for (const Slot& slot : slots) {
    const DeviceState& device = second_.device(slot.device);
    MilliGpu share{0};
    MiB memory{0};
    for (const Tenant& tenant : device.tenants) {
      if (std::find(leaving.begin(), leaving.end(), tenant.task) != leaving.end()) continue;
      share += tenant.share;
      memory += tenant.memory;
    }
    for (const Slot& claim : claimed) {
      if (claim.device != slot.device) continue;
      share += claim.share;
      memory += claim.memory;
    }
    const MiB room = device.memory - second_.spec.device_reserve - device.foreign;
    if (!is_usable(second_, device) || share > whole_device || memory > room) {
      violated("a plan for task ", task.value, " has no room on ", device.uuid);
    }
  }
}

// Who leaves already, for whatever reason, may be waited for; who runs is asked only by the rules.
void Invariants::check_asked(const TaskState& victim, const TaskState& task, ReleaseMode mode) {
  if (victim.phase == Phase::yielding || victim.phase == Phase::stopping) return;
  const std::string& name = victim.spec.name;
  check_victim(victim, mode);
  if (victim.phase != Phase::running) violated(name, " is a victim and does not run");
  if (victim.tier <= task.tier) violated(name, " is a victim of no heavier tier");
  if (victim.purpose == Purpose::inference) violated(name, " serves and is a victim");
  if (victim.purpose == Purpose::interactive && task.purpose != Purpose::inference) {
    violated(name, " is interactive and a victim of training");
  }
}

void Invariants::check(const PreemptionPlanned& d) {
  const TaskState& task = second_.tasks.at(d.task);
  if (second_.pause.active) violated("a preemption is planned while the pool is paused");
  if (d.victims.empty()) violated("a plan without victims for ", task.spec.name);
  check_room(d.task, d.slots, d.victims);
  for (const Victim& v : d.victims) {
    const TaskState& victim = second_.tasks.at(v.task);
    const std::string& name = victim.spec.name;
    if (v.release_by > d.needed_by) violated(name, " releases too late");
    check_asked(victim, task, v.mode);
  }
  check_helps(d.slots, d.victims);
}

void Invariants::check_helps(const std::vector<Slot>& slots, const std::vector<Victim>& victims) {
  for (const Victim& v : victims) {
    const TaskState& victim = second_.tasks.at(v.task);
    const bool helps = std::any_of(victim.slots.begin(), victim.slots.end(),
                                   [&](const Slot& s) { return is_slot(slots, s.device.value); });
    if (!helps) violated(victim.spec.name, " is a victim and frees nothing that is needed");
  }
}

// D4: what is kept for training, and where it is moved to, is what it may be placed on.
void Invariants::check_roles(const TaskState& task, const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const Role role = second_.device(slot.device).role;
    const bool lent = role == Role::core || (role == Role::buffer && task.releasable);
    if (!lent) violated(task.spec.name, " has devices claimed that training may not have");
  }
}

void Invariants::check(const RoomReserved& d) {
  const TaskState& task = second_.tasks.at(d.task);
  ++reserved_;
  if (second_.pause.active) violated("room is kept while the pool is paused");
  if (task.phase != Phase::waiting) violated(task.spec.name, " has room kept and does not wait");
  if (now_ - task.phase_since < second_.spec.reserve.after) {
    violated(task.spec.name, " has room kept before it has waited for long");
  }
  if (d.victims.empty()) violated("room is kept for ", task.spec.name, ", which could start");
  check_roles(task, d.slots);
  check_room(d.task, d.slots, d.victims);
  check_helps(d.slots, d.victims);
}

// Between equals only as a move: its place is claimed first.
void Invariants::check(const MovePlanned& d) {
  const TaskState& task = second_.tasks.at(d.task);
  ++moved_;
  if (second_.pause.active) violated(task.spec.name, " is moved while the pool is paused");
  if (task.phase != Phase::running) violated(task.spec.name, " is moved and does not run");
  if (task.purpose != Purpose::batch) violated(task.spec.name, " is moved and is no batch task");
  for (const Slot& slot : task.slots) {
    if (is_slot(d.slots, slot.device.value) && task.slots.size() == 1) {
      violated(task.spec.name, " is moved to where it is");
    }
  }
  const Micros restore =
      task.seen_restore.value > 0 ? task.seen_restore : task.spec.contract.restore;
  if (now_ - task.started_at < restore * second_.spec.defragment.cooldown) {
    violated(task.spec.name, " is moved within its cooldown");
  }
  if (d.for_task.valid()) {
    const TaskState& other = second_.tasks.at(d.for_task);
    if (task.tier < other.tier) violated(task.spec.name, " is moved for a lighter task");
  }
  check_roles(task, d.slots);
  check_room(d.task, d.slots, {});
}

void Invariants::check(const YieldAsked& d) {
  const TaskState& task = second_.tasks.at(d.task);
  if (second_.pause.active) violated(task.spec.name, " is to yield while the pool is paused");
  if (task.phase != Phase::running) violated(task.spec.name, " is to yield and does not run");
  if (d.reason != StopReason::preempted && d.reason != StopReason::guard_restored &&
      d.reason != StopReason::moved && d.reason != StopReason::adoption &&
      d.reason != StopReason::resized) {
    violated(task.spec.name, " is to yield without a need");
  }
  check_victim(task, d.mode);
}

void Invariants::check(const StopAsked& d) {
  const TaskState& task = second_.tasks.at(d.task);
  if (d.reason == StopReason::none) violated(task.spec.name, " is stopped without a reason");
  const bool for_capacity = d.reason == StopReason::preempted ||
                            d.reason == StopReason::guard_restored ||
                            d.reason == StopReason::moved || d.reason == StopReason::adoption ||
                            d.reason == StopReason::resized;
  if (for_capacity && (task.phase != Phase::yielding || task.captured <= task.started_at)) {
    violated(task.spec.name, " is stopped for capacity before its boundary");
  }
  if (for_capacity && second_.pause.active) {
    violated(task.spec.name, " is stopped for capacity while the pool is paused");
  }
  if (d.reason == StopReason::contract_breach &&
      (task.phase != Phase::yielding || now_ < task.yield_by + second_.spec.preempt.grace)) {
    violated(task.spec.name, " is stopped for a breach before its grace has passed");
  }
}

void Invariants::check(const KillAsked& d) {
  const TaskState& task = second_.tasks.at(d.task);
  const bool overdue = task.phase == Phase::stopping && now_ >= task.kill_at;
  const bool for_capacity =
      d.reason == StopReason::preempted || d.reason == StopReason::guard_restored;
  const bool glass = for_capacity && second_.spec.preempt.break_glass;
  if (!overdue && !glass) violated(task.spec.name, " is killed before it was asked to stop");
}

void Invariants::check(const TaskRefused& d) {
  const TaskState& task = second_.tasks.at(d.task);
  if (d.condition.empty()) violated(task.spec.name, " is refused and no condition is named");
  if (task.shape.valid()) violated(task.spec.name, " is refused after it was admitted");
}

void Invariants::check(const ReplicaAdded& d) {
  const ServiceState& service = second_.service(d.service);
  std::int32_t staying = 0;
  for (const TaskId id : service.replicas) {
    staying += second_.tasks.at(id).phase != Phase::stopping ? 1 : 0;
  }
  if (service.removed) violated(service.spec.name, " is removed and gets a replica");
  // One more than are wanted while a new version takes over (C4).
  const std::int32_t most = service.spec.max_replicas + (service.roll ? 1 : 0);
  if (staying >= most) violated(service.spec.name, " has too many replicas");
  if (second_.pause.active && staying >= service.spec.min_replicas) {
    violated(service.spec.name, " is scaled up while the pool is paused");
  }
}

}  // namespace neap::sim
