// What a drill does to the state, and what it keeps of what happens while it lasts (SPEC F12).
#include <algorithm>

#include "core/apply_parts.h"
#include "core/rules/place.h"
#include "core/rules/scale.h"

namespace neap {

namespace {

constexpr Micros longest_drill = hours(24);
constexpr Micros longest_pause = minutes(10);
constexpr std::int32_t most_drill_preemptions = 10'000;

bool is_under_way(const PoolState& state) { return state.drill.phase != DrillPhase::none; }

DrillReplica* find_replica(DrillState& drill, TaskId task) {
  const auto found = std::find_if(drill.placed.begin(), drill.placed.end(),
                                  [&](const DrillReplica& r) { return r.task == task; });
  return found == drill.placed.end() ? nullptr : &*found;
}

// The newest asking of this allocation that still stands open.
DrillVictim* find_victim(DrillState& drill, const TaskState& task) {
  const auto found =
      std::find_if(drill.victims.rbegin(), drill.victims.rend(), [&](const DrillVictim& v) {
        return v.task == task.id && v.allocation == task.allocation && v.left == Time::never();
      });
  return found == drill.victims.rend() ? nullptr : &*found;
}

// What left for the drill, of which its replicas have not taken as much yet: in milli-GPU.
std::int64_t yielded_and_not_taken(const PoolState& state) {
  const auto milli_of = [&](TaskId id) -> std::int64_t {
    const TaskState* task = state.tasks.find(id);
    return task == nullptr ? 0 : task->spec.request.count * task->spec.request.share.value;
  };
  std::int64_t milli = 0;
  for (const DrillVictim& victim : state.drill.victims) {
    if (victim.left != Time::never()) milli += milli_of(victim.task);
  }
  for (const DrillReplica& replica : state.drill.placed) {
    if (replica.source == RoomSource::yielded) milli -= milli_of(replica.task);
  }
  return milli;
}

// Who yielded may have left after the plan was dropped, and what it left may have become guard.
RoomSource source_of_room(const PoolState& state, const TaskState& replica, Role role) {
  const auto plan = state.plans.find(replica.id);
  if (plan != state.plans.end() && plan->second.kind == PlanKind::preemption) {
    return RoomSource::yielded;
  }
  const bool reserve = role == Role::guard || role == Role::buffer;
  const bool had_room = reserve && state.drill.idle_reserve > 0;
  if (!had_room && yielded_and_not_taken(state) > 0) return RoomSource::yielded;
  return role == Role::guard    ? RoomSource::guard
         : role == Role::buffer ? RoomSource::buffer
                                : RoomSource::free;
}

// It left for the drill, and does not run again yet.
bool was_displaced(const PoolState& state, TaskId task) {
  const auto& victims = state.drill.victims;
  return std::any_of(victims.begin(), victims.end(), [&](const DrillVictim& v) {
    return v.task == task && v.left != Time::never() && v.resumed == Time::never();
  });
}

bool yields_for_drill(const PoolState& state, TaskId victim) {
  const auto found = state.index->plans_of_victim.find(victim);
  if (found == state.index->plans_of_victim.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](TaskId task) {
    return state.tasks.at(task).service == state.drill.service;
  });
}

// What the drill took, somebody takes from the next: whom a displaced task has others yield for, in
// its place or, being forced to start, in the lane.
bool yields_for_displaced(const PoolState& state, const TaskState& victim) {
  const auto found = state.index->plans_of_victim.find(victim.id);
  if (found != state.index->plans_of_victim.end()) {
    return std::any_of(found->second.begin(), found->second.end(),
                       [&](TaskId task) { return was_displaced(state, task); });
  }
  const bool leaves_lane =
      victim.stop_reason == StopReason::preempted &&
      std::any_of(victim.slots.begin(), victim.slots.end(),
                  [&](const Slot& s) { return state.device(s.device).role == Role::lane; });
  if (!leaves_lane) return false;
  return std::any_of(state.drill.victims.begin(), state.drill.victims.end(),
                     [&](const DrillVictim& v) {
                       const TaskState* task = state.tasks.find(v.task);
                       return task != nullptr && task->phase == Phase::waiting && task->forced &&
                              was_displaced(state, v.task);
                     });
}

// Devices of the guard and the buffer on which one more replica would have found room.
std::int64_t idle_reserve(const PoolState& state) {
  const Request& wanted = state.service(state.drill.service).spec.request;
  std::int64_t idle = 0;
  for (const DeviceState& device : state.devices) {
    if (device.role != Role::guard && device.role != Role::buffer) continue;
    if (!is_usable(state, device)) continue;
    const std::string& model = state.models[device.model.value].name;
    const bool allowed = wanted.models.empty() ||
                         std::binary_search(wanted.models.begin(), wanted.models.end(), model);
    const MilliGpu free = whole_device - device.used_share - device.held_share;
    if (allowed && free >= wanted.share && free_memory(state, device) >= wanted.memory) ++idle;
  }
  return idle;
}

void end_drill_pause(PoolState& state) {
  DrillState& drill = state.drill;
  drill.pausing = false;
  drill.resumed_at = state.now;
}

Result<void> refuse_drill(std::string message, std::string field) {
  return fail(ErrorCode::invalid_argument, std::move(message), std::move(field));
}

Result<void> check_limits(const DrillStarted& e) {
  const DrillLimits& limits = e.limits;
  if (e.length < seconds(1) || e.length > longest_drill) {
    return refuse_drill("a drill lasts 1 s to 24 h", "for");
  }
  if (limits.preemptions < 0 || limits.preemptions > most_drill_preemptions) {
    return refuse_drill("preemptions of a drill are 0 to 10000", "max_preemptions");
  }
  if (limits.lost < Micros(0)) return refuse_drill("lost work is 0 or more", "max_lost");
  const auto is_length = [](Micros length) {
    return length > Micros(0) && length <= longest_drill;
  };
  if (!is_length(limits.ready_within))
    return refuse_drill("more than 0, up to 24 h", "ready_within");
  if (!is_length(limits.resume_within))
    return refuse_drill("more than 0, up to 24 h", "resume_within");
  if (!is_length(limits.freeze_within))
    return refuse_drill("more than 0, up to 24 h", "freeze_within");
  if (limits.pause < Micros(0) || limits.pause > longest_pause || limits.pause >= e.length) {
    return refuse_drill("the pause is 0 to 10 min, and shorter than the drill", "pause");
  }
  return {};
}

}  // namespace

Result<void> check_drill(const PoolState& state, const ServiceState& service,
                         const DrillStarted& e) {
  if (is_under_way(state)) {
    return fail(ErrorCode::conflict, "a drill is under way; `neap drill stop` ends it");
  }
  if (state.pause.active) {
    return fail(ErrorCode::conflict, "the pool is paused: nothing could be reclaimed");
  }
  const std::int32_t now = staying_replicas(state, service);
  if (e.replicas <= now || e.replicas > service.spec.max_replicas) {
    return refuse_drill(
        "the service has " + std::to_string(now) + " replicas and may have " +
            std::to_string(service.spec.max_replicas) +
            ": a drill asks for more than the first and no more than the second, got " +
            std::to_string(e.replicas),
        "replicas");
  }
  return check_limits(e);
}

void set_pause(PoolState& state, Pause pause) {
  state.pause = std::move(pause);
  mark_waiting(state);
  PoolIndex::Agenda& agenda = state.index->agenda;
  if (state.pause.active) {
    // Whoever was asked to yield may stay (G4), for whatever the yield was asked.
    agenda.attention.insert(state.index->leaving.begin(), state.index->leaving.end());
    for (const auto& [task, plan] : state.plans) agenda.plans.insert(task);
    return;
  }
  agenda.guard = true;
  for (const ServiceState& service : state.services) {
    if (!service.removed) agenda.services.insert(service.id.value);
  }
}

void begin_drill(PoolState& state, const DrillStarted& e) {
  const ServiceId service = *find_live_service(state, e.service);
  DrillState drill;
  drill.phase = DrillPhase::demand;
  drill.service = service;
  drill.replicas = e.replicas;
  drill.before = staying_replicas(state, state.service(service));
  drill.limits = e.limits;
  drill.by = e.by;
  drill.began = state.now;
  drill.until = state.now + e.length;
  // Should nobody be asked to yield, the pause is rehearsed all the same.
  if (e.limits.pause.value > 0) drill.pause_at = state.now + (e.length - e.limits.pause) / 2;
  state.drill = std::move(drill);
  state.index->agenda.services.insert(service.value);
  refresh_drill_timer(state);
}

void withdraw_drill(PoolState& state, const std::string& why) {
  DrillState& drill = state.drill;
  drill.phase = DrillPhase::settling;
  drill.withdrawn = why;
  drill.settle_by = state.now + drill.limits.resume_within;
  if (drill.pausing) resume_drill(state);
  state.index->agenda.services.insert(drill.service.value);
  refresh_drill_timer(state);
}

void end_drill(PoolState& state, const DrillEnded& e) {
  state.drill.phase = DrillPhase::none;
  state.last_drill = {e.kind, e.passed, e.at, e.detail};
  refresh_drill_timer(state);
}

void pause_drill(PoolState& state) {
  state.drill.paused_at = state.now;
  state.drill.pausing = true;
  set_pause(state, {true, "drill", "a pause is rehearsed, and ends by itself", state.now});
  refresh_drill_timer(state);
}

void resume_drill(PoolState& state) {
  end_drill_pause(state);
  set_pause(state, {false, "drill", {}, state.now});
  refresh_drill_timer(state);
}

void note_pause_in_drill(PoolState& state) {
  if (!is_under_way(state) || !state.drill.pausing) return;
  end_drill_pause(state);
  refresh_drill_timer(state);
}

void note_resume_in_drill(PoolState& state) {
  if (!is_under_way(state)) return;
  if (state.drill.pausing) end_drill_pause(state);
  if (state.drill.phase == DrillPhase::settling) {
    state.drill.settle_by = state.now + state.drill.limits.resume_within;
  }
  refresh_drill_timer(state);
}

void note_added_in_drill(PoolState& state, const TaskState& replica) {
  DrillState& drill = state.drill;
  if (drill.phase != DrillPhase::demand || replica.service != drill.service) return;
  drill.placed.push_back({replica.id, state.now, Time::never(), Time::never(), RoomSource::none});
  refresh_drill_timer(state);
}

bool came_for_drill(const PoolState& state, const TaskState& replica) {
  const auto& placed = state.drill.placed;
  return replica.service == state.drill.service &&
         std::any_of(placed.begin(), placed.end(),
                     [&](const DrillReplica& r) { return r.task == replica.id; });
}

void note_placed_in_drill(PoolState& state, const TaskState& replica,
                          const std::vector<Slot>& slots) {
  if (!is_under_way(state) || replica.service != state.drill.service) return;
  DrillReplica* entry = find_replica(state.drill, replica.id);
  if (entry == nullptr) return;
  entry->placed = state.now;
  entry->source = source_of_room(state, replica, state.device(slots.front().device).role);
}

void note_ready_in_drill(PoolState& state, const TaskState& replica) {
  if (!is_under_way(state) || replica.service != state.drill.service) return;
  DrillReplica* entry = find_replica(state.drill, replica.id);
  if (entry == nullptr || entry->ready != Time::never()) return;
  entry->ready = state.now;
  refresh_drill_timer(state);
}

void note_started_in_drill(PoolState& state, const TaskState& task) {
  if (!is_under_way(state)) return;
  for (DrillVictim& victim : state.drill.victims) {
    const bool is_back = victim.task == task.id && victim.left != Time::never();
    if (is_back && victim.resumed == Time::never()) victim.resumed = state.now;
  }
}

void note_asked_in_drill(PoolState& state, const TaskState& task) {
  DrillState& drill = state.drill;
  if (!is_under_way(state) || task.stop_reason == StopReason::guard_restored) return;
  const bool own = drill.phase == DrillPhase::demand && yields_for_drill(state, task.id);
  if (!own && !yields_for_displaced(state, task)) return;
  if (drill.victims.empty()) {
    drill.idle_reserve = idle_reserve(state);
    // At once: who was asked may still be told to stay.
    drill.pause_at = std::min(drill.pause_at, state.now);
  }
  if (drill.pausing) {
    ++drill.asked_in_pause;
    drill.froze = state.now - drill.paused_at;
  }
  if (drill.resumed_at != Time::never()) ++drill.asked_after_pause;
  DrillVictim victim;
  victim.task = task.id;
  victim.allocation = task.allocation;
  victim.asked = state.now;
  victim.promised = task.yield_by;
  victim.lost_before = task.lost;
  drill.victims.push_back(std::move(victim));
  refresh_drill_timer(state);
}

void note_withdrawn_in_drill(PoolState& state, const TaskState& task) {
  if (!is_under_way(state)) return;
  DrillVictim* victim = find_victim(state.drill, task);
  if (victim == nullptr) return;
  victim->withdrawn = true;
  if (state.drill.pausing) state.drill.froze = state.now - state.drill.paused_at;
}

void note_forced_in_drill(PoolState& state, const TaskState& task) {
  if (!is_under_way(state)) return;
  if (DrillVictim* victim = find_victim(state.drill, task)) victim->forced = true;
}

void note_left_in_drill(PoolState& state, const TaskState& task, Phase next) {
  if (!is_under_way(state)) return;
  DrillVictim* victim = find_victim(state.drill, task);
  if (victim == nullptr) return;
  // Withdrawn, and it stayed: what ended it later was something else.
  if (victim->withdrawn && next != Phase::waiting) return;
  victim->withdrawn = false;
  victim->left = state.now;
  victim->lost = task.lost - victim->lost_before;
  if (next == Phase::finished || next == Phase::cancelled) victim->resumed = state.now;
  if (state.drill.pausing) state.drill.froze = state.now - state.drill.paused_at;
}

}  // namespace neap
