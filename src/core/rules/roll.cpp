#include "core/rules/roll.h"

#include <algorithm>

#include "core/rules/scale.h"

namespace neap {

namespace {

struct Replicas {
  std::vector<const TaskState*> old_ready, old_unready;  // of another version
  std::int32_t new_ready = 0, new_unready = 0;
  std::int32_t leaving = 0;

  [[nodiscard]] std::int32_t ready() const {
    return new_ready + static_cast<std::int32_t>(old_ready.size());
  }
  [[nodiscard]] bool has_old() const { return !old_ready.empty() || !old_unready.empty(); }
};

Replicas replicas_of(const PoolState& state, const ServiceState& service) {
  Replicas out;
  for (const TaskId id : service.replicas) {
    const TaskState& task = state.tasks.at(id);
    const bool is_new = task.version == service.version;
    if (leaves(task)) {
      out.leaving += holds_devices(task.phase) ? 1 : 0;
    } else if (is_new) {
      (task.ready ? out.new_ready : out.new_unready) += 1;
    } else {
      (task.ready ? out.old_ready : out.old_unready).push_back(&task);
    }
  }
  return out;
}

// Of a version that nothing served before. Whoever was to serve one that it took the place of goes.
RollStep untried_step(const PoolState& state, const ServiceState& service) {
  const Replicas replicas = replicas_of(state, service);
  if (replicas.new_ready > 0) return {.ends = ServiceRolled{service.id, RollOutcome::done, {}}};
  return {.remove = first_to_leave(state, replicas.old_unready, replicas.old_unready.size())};
}

}  // namespace

RollStep roll_step(const PoolState& state, const ServiceState& service) {
  const Roll& roll = *service.roll;
  if (state.pause.active) return {};
  if (roll.phase == RollPhase::forward && !roll.fault.empty()) {
    return {.ends = ServiceRolled{service.id, RollOutcome::rolled_back, roll.fault}};
  }
  if (is_untried(service)) return untried_step(state, service);
  const std::int32_t wanted =
      std::clamp(roll.wanted, service.spec.min_replicas, service.spec.max_replicas);
  const Replicas replicas = replicas_of(state, service);
  if (!replicas.has_old() && replicas.new_ready >= wanted) {
    const char* why = roll.phase == RollPhase::back ? "the version before serves alone again" : "";
    return {.ends = ServiceRolled{service.id, RollOutcome::done, why}};
  }
  RollStep step;
  // What does not serve yet and never will be needed.
  step.remove = first_to_leave(state, replicas.old_unready, replicas.old_unready.size());
  if (replicas.ready() > wanted && !replicas.old_ready.empty()) {
    const auto surplus = static_cast<std::size_t>(replicas.ready() - wanted);
    const std::vector<TaskId> leave = first_to_leave(state, replicas.old_ready, surplus);
    step.remove.insert(step.remove.end(), leave.begin(), leave.end());
    return step;
  }
  const std::int32_t live = replicas.ready() + replicas.new_unready + replicas.leaving;
  const bool lacks = replicas.new_ready < wanted || !replicas.old_ready.empty();
  if (lacks && replicas.new_unready == 0 && live <= wanted) step.add = RollStep::Add::one;
  return step;
}

}  // namespace neap
