#include "core/rules/scale.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/rules/drill.h"
#include "core/rules/signals.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"

namespace neap {

bool leaves(const TaskState& task) {
  return task.phase == Phase::stopping || task.phase == Phase::yielding ||
         (task.stop_reason != StopReason::none && holds_devices(task.phase));
}

namespace {

// Which replica goes first: one that still waits, one that does not serve yet, then one on devices
// that training could use; of those, of the node with the fewest, so that it becomes free as a
// whole; the newest of equals.
struct LeavingReplica {
  int progress = 0;
  int worst_role = 0;
  std::int32_t beside = 0;
  NodeId node;
  TaskId task;
  [[nodiscard]] bool goes_before(const LeavingReplica& other) const {
    const auto key = [](const LeavingReplica& l) {
      return std::tuple(l.progress, l.worst_role, l.beside, l.node);
    };
    return key(*this) != key(other) ? key(*this) < key(other) : task > other.task;
  }
};

LeavingReplica leaver_of(const PoolState& state, const TaskState& task) {
  LeavingReplica leaver{task.phase == Phase::waiting ? 0
                        : task.ready                 ? 2
                                                     : 1,
                        3, 0, NodeId(0), task.id};
  for (const Slot& slot : task.slots) {
    leaver.worst_role =
        std::min(leaver.worst_role, static_cast<int>(state.device(slot.device).role));
  }
  const bool placed = holds_devices(task.phase) && !task.slots.empty();
  if (placed) leaver.node = state.device(task.slots.front().device).node;
  return leaver;
}

}  // namespace

std::vector<TaskId> first_to_leave(const PoolState& state,
                                   const std::vector<const TaskState*>& staying,
                                   std::size_t count) {
  std::vector<LeavingReplica> leavers;
  std::map<NodeId, std::int32_t> on_node;
  for (const TaskState* task : staying) {
    leavers.push_back(leaver_of(state, *task));
    ++on_node[leavers.back().node];
  }
  std::vector<TaskId> out;
  while (out.size() < count && !leavers.empty()) {
    for (LeavingReplica& leaver : leavers) leaver.beside = on_node[leaver.node];
    const auto first = std::min_element(
        leavers.begin(), leavers.end(),
        [](const LeavingReplica& a, const LeavingReplica& b) { return a.goes_before(b); });
    --on_node[first->node];
    out.push_back(first->task);
    leavers.erase(first);
  }
  return out;
}

std::int32_t staying_replicas(const PoolState& state, const ServiceState& service) {
  return static_cast<std::int32_t>(
      std::count_if(service.replicas.begin(), service.replicas.end(),
                    [&](TaskId id) { return !leaves(state.tasks.at(id)); }));
}

namespace {

struct Surplus {
  std::int32_t replicas = 0;
  const char* why = "";
};

// No more than the budget of switches has left: who holds devices stays then. Who still waits for
// some gives nothing up.
ScaleStep given_away(const PoolState& state, const ServiceState& service,
                     const std::vector<const TaskState*>& staying, const Surplus& surplus,
                     Time now) {
  if (surplus.replicas <= 0) return {};
  ScaleStep step{0, first_to_leave(state, staying, static_cast<std::size_t>(surplus.replicas)),
                 surplus.why};
  auto left = switches_left(state, service, now);
  if (!left) return step;
  std::erase_if(step.remove, [&](TaskId id) {
    return holds_devices(state.tasks.at(id).phase) && (*left)-- <= 0;
  });
  return step;
}

}  // namespace

ScaleStep scale_step(const PoolState& state, const ServiceState& service, Time now) {
  std::vector<const TaskState*> staying;
  bool all_ready = true;
  for (const TaskId id : service.replicas) {
    const TaskState& task = state.tasks.at(id);
    if (leaves(task)) continue;
    staying.push_back(&task);
    all_ready = all_ready && task.ready;
  }
  const auto live = static_cast<std::int32_t>(staying.size());
  const std::int32_t most = service.removed ? 0 : service.spec.max_replicas;
  const std::int32_t least = service.removed ? 0 : least_replicas(state, service);
  if (live > most) {
    return {0, first_to_leave(state, staying, static_cast<std::size_t>(live - most)),
            service.removed ? "the service was removed" : "above its largest number of replicas"};
  }
  if (live < least)
    return {least - live, {}, "below its smallest number of replicas", ReplicaCause::least};
  if (state.pause.active) return {};
  if (const std::int32_t extra = live - replicas_after_drill(state, service, now); extra > 0) {
    return {0, first_to_leave(state, staying, static_cast<std::size_t>(extra)), "the drill is over",
            ReplicaCause::demand, StopReason::drill_over};
  }
  if (service.wake && live == 0 && most > 0) return {1, {}, "somebody asks, and nothing serves"};
  // The last one goes when nobody has asked for long, however little was asked for.
  const std::int32_t lowest = may_sleep(state, service, now) ? least : std::max(least, 1);
  const ScaleSpec& scale = scale_of(state, service);
  const auto held_for = [&](Time since, Micros needed) {
    return since != Time::never() && now - since >= needed;
  };
  if (scale.mode == ScaleMode::tidal) {
    const auto target = tidal_target(state, service, now);
    if (target && *target > live) return {*target - live, {}, "the demand or its hour needs more"};
    if (!target) return {};
    const bool idled = held_for(service.below_since, dwell_of(state, service));
    const std::int32_t idle =
        idled ? live - std::max({*target, lowest, service.needed_while_low}) : 0;
    if (idle > 0)
      return given_away(state, service, staying, {idle, "fewer were enough for long"}, now);
    if (!service.hour_needs) return {};
    const std::int32_t unusual = live - std::max({*target, lowest, *service.hour_needs});
    return given_away(state, service, staying, {unusual, "this hour seldom needs more"}, now);
  }
  if (held_for(service.above_since, scale.up_for) && live < most && all_ready) {
    return {1, {}, "above the upper threshold for its time"};
  }
  if (held_for(service.below_since, scale.down_for) && live > lowest) {
    return given_away(state, service, staying, {1, "below the lower threshold for its time"}, now);
  }
  return {};
}

TaskSpec replica_spec(const ServiceState& service) {
  TaskSpec spec;
  spec.name = service.spec.name + "." + std::to_string(service.next_replica);
  spec.team = service.spec.team;
  spec.tier = service.spec.tier;
  spec.request = service.spec.request;
  // Its replicas are a group, whether or not it wants them apart.
  if (spec.request.near.group.empty()) spec.request.near.group = service.spec.name;
  spec.owner = service.spec.owner;
  spec.launch = service.spec.launch;
  spec.baseline = service.spec.baseline;
  spec.artifacts = service.spec.artifacts;
  spec.profile = service.spec.profile;
  return spec;
}

bool fails_to_start(const PoolState& state, const TaskState& task) {
  return task.service.valid() &&
         state.service(task.service).failures >= std::max(1, state.spec.max_restarts);
}

Micros replica_backoff(const ServiceState& service) {
  if (service.failures == 0) return Micros(0);
  return std::min(minutes(5), seconds(std::int64_t{1} << std::min(service.failures, 9)));
}

}  // namespace neap
