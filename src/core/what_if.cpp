#include "core/what_if.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/rules/place.h"
#include "core/rules/starts.h"

namespace neap {

namespace {

bool starts_after(const PoolState& state, TaskId id, const Unblock& unblock, Time now) {
  PoolState copy(state);
  apply_unblock(copy, unblock, now);
  const TaskState* task = copy.tasks.find(id);
  return task != nullptr && task->phase != Phase::waiting;
}

// Running tasks in the order in which their end would cost least: lighter tiers and newer first.
std::vector<TaskId> likely_to_end(const PoolState& state, const TaskState& task) {
  const std::uint8_t roles = allowed_roles(state, state.shape(task.shape));
  std::vector<const TaskState*> running;
  state.tasks.for_each([&](const TaskState& other) {
    if (!holds_devices(other.phase)) return;
    const bool useful = std::any_of(other.slots.begin(), other.slots.end(), [&](const Slot& slot) {
      return (roles & role_bit(state.device(slot.device).role)) != 0;
    });
    if (useful) running.push_back(&other);
  });
  std::sort(running.begin(), running.end(), [](const TaskState* a, const TaskState* b) {
    return std::tuple(b->tier, b->placed_at, b->id) < std::tuple(a->tier, a->placed_at, a->id);
  });
  std::vector<TaskId> ids;
  for (const TaskState* t : running) ids.push_back(t->id);
  return ids;
}

constexpr std::size_t most_ends_tried = 64;

std::optional<Unblock> by_ending_tasks(const PoolState& state, const TaskState& task, Time now) {
  const std::vector<TaskId> candidates = likely_to_end(state, task);
  Unblock unblock;
  unblock.kind = Unblock::Kind::end_tasks;
  for (std::size_t i = 0; i < std::min(candidates.size(), most_ends_tried); ++i) {
    unblock.tasks = {candidates[i]};
    if (starts_after(state, task.id, unblock, now)) return unblock;
  }
  unblock.tasks.clear();
  for (std::size_t i = 0; i < std::min(candidates.size(), most_ends_tried); ++i) {
    unblock.tasks.push_back(candidates[i]);
    if (i == 0 || !starts_after(state, task.id, unblock, now)) continue;
    // Fewer may do: leave out each that is not needed.
    for (std::size_t j = unblock.tasks.size(); j-- > 0;) {
      Unblock fewer = unblock;
      fewer.tasks.erase(fewer.tasks.begin() + static_cast<std::ptrdiff_t>(j));
      if (starts_after(state, task.id, fewer, now)) unblock = fewer;
    }
    return unblock;
  }
  return std::nullopt;
}

std::optional<Unblock> by_adding_devices(const PoolState& state, const TaskState& task, Time now) {
  const Shape& shape = state.shape(task.shape);
  Unblock unblock;
  unblock.kind = Unblock::Kind::add_devices;
  for (const ModelState& model : state.models) {
    if (!names_model(shape.request.models, model.name)) continue;
    if (model.memory < shape.request.memory) continue;
    unblock.model = model.name;
    unblock.memory = model.memory;
    break;
  }
  if (unblock.model.empty()) return std::nullopt;
  for (std::int32_t n = 1; n <= 1024; n *= 2) {
    unblock.devices = std::max(n, 1);
    if (!starts_after(state, task.id, unblock, now)) continue;
    for (std::int32_t low = n / 2 + 1; low < n; ++low) {  // the smallest that does
      unblock.devices = low;
      if (starts_after(state, task.id, unblock, now)) return unblock;
    }
    unblock.devices = n;
    return unblock;
  }
  return std::nullopt;
}

void end_task(PoolState& state, TaskId id, Time now) {
  const TaskState& task = state.tasks.at(id);
  StepResult ignored;
  TaskExited exit;
  exit.stamp = {task.allocation, task.report_epoch, task.report_sequence + 1};
  if (task.service.valid() && !state.service(task.service).removed) {
    // A replica ends for good only when its service asks for one less.
    ServiceScaled scaled{state.service(task.service).spec.name, 0, 0, "what-if"};
    const auto staying = static_cast<std::int32_t>(state.service(task.service).replicas.size());
    scaled.min_replicas = scaled.max_replicas = std::max(0, staying - 1);
    step(state, now, scaled, ignored);
  }
  if (holds_devices(state.tasks.at(id).phase)) step(state, now, exit, ignored);
}

}  // namespace

void apply_unblock(PoolState& state, const Unblock& unblock, Time now) {
  StepResult ignored;
  switch (unblock.kind) {
    case Unblock::Kind::resume_pool:
      step(state, now, ResumeRequested{"what-if"}, ignored);
      break;
    case Unblock::Kind::end_tasks:
      for (const TaskId id : unblock.tasks) end_task(state, id, now);
      break;
    case Unblock::Kind::add_devices: {
      NodeJoined joined;
      joined.spec.name = "what-if";
      joined.spec.fault_domain = "what-if";
      for (std::int32_t i = 0; i < unblock.devices; ++i) {
        joined.spec.devices.push_back(
            {"what-if-" + std::to_string(i), unblock.model, unblock.memory, false});
      }
      step(state, now, joined, ignored);
      break;
    }
    case Unblock::Kind::in_time:
      step(state, std::max(now, unblock.at), TimerFired{}, ignored);
      break;
    case Unblock::Kind::stages:
    case Unblock::Kind::unknown:
      break;
  }
}

namespace {

Unblock search_unblock(const PoolState& state, TaskId id, Time now) {
  const TaskState& task = state.tasks.at(id);
  if (task.phase != Phase::waiting || !task.shape.valid()) return {};
  if (task.awaits_stages) {
    Unblock unblock;
    unblock.kind = Unblock::Kind::stages;
    return unblock;
  }
  if (const auto plan = state.plans.find(id); plan != state.plans.end()) {
    Unblock unblock;
    unblock.kind = Unblock::Kind::end_tasks;
    for (const Victim& victim : plan->second.victims) unblock.tasks.push_back(victim.task);
    if (starts_after(state, id, unblock, now)) return unblock;
  }
  Unblock unblock;
  if (task.not_before > now) {
    unblock.kind = Unblock::Kind::in_time;
    unblock.at = task.not_before;
    if (starts_after(state, id, unblock, now)) return unblock;
  }
  if (wait_code_of(state, task) == WaitCode::starts) {
    unblock.kind = Unblock::Kind::in_time;
    unblock.at = next_turn(state);
    if (starts_after(state, id, unblock, now)) return unblock;
  }
  if (state.pause.active) {
    unblock = {};
    unblock.kind = Unblock::Kind::resume_pool;
    if (starts_after(state, id, unblock, now)) return unblock;
  }
  if (task.shape.valid() && task.not_before <= now) {
    if (auto ends = by_ending_tasks(state, task, now)) return *ends;
    if (!task.dedicated) {
      if (auto devices = by_adding_devices(state, task, now)) return *devices;
    }
  }
  return {};
}

}  // namespace

Unblock find_unblock(const PoolState& state, TaskId id, Time now) {
  Unblock unblock = search_unblock(state, id, now);
  unblock.waiting = id;
  return unblock;
}

std::string to_text(const PoolState& state, const Unblock& unblock) {
  switch (unblock.kind) {
    case Unblock::Kind::in_time:
      return "nothing to do: it starts again by itself";
    case Unblock::Kind::resume_pool:
      return "resume the pool (neap resume)";
    case Unblock::Kind::end_tasks: {
      std::string text = "it starts when ";
      for (std::size_t i = 0; i < unblock.tasks.size(); ++i) {
        const TaskSpec& other = state.tasks.at(unblock.tasks[i]).spec;
        const TaskState* asker = state.tasks.find(unblock.waiting);
        const bool own = asker == nullptr || asker->spec.owner.uid == other.owner.uid;
        text += (i == 0 ? "" : ", ") + (own ? other.name : "another user's task");
      }
      return text + (unblock.tasks.size() == 1 ? " ends" : " end");
    }
    case Unblock::Kind::add_devices:
      return "it starts with " + std::to_string(unblock.devices) + " more " + unblock.model +
             (unblock.devices == 1 ? " device" : " devices on one node");
    case Unblock::Kind::stages:
      return "it enters when the stages before it are done and its conditions hold";
    case Unblock::Kind::unknown:
      break;
  }
  return "no single change that neap tried would start it";
}

}  // namespace neap
