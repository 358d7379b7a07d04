#include "core/rules/explain.h"

#include <algorithm>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/place.h"

namespace neap {

namespace {

std::string gib_text(MiB memory) {
  if (memory.value % 1024 == 0) return std::to_string(memory.value / 1024) + " GiB";
  return std::to_string(memory.value) + " MiB";
}

std::string percent_text(MilliGpu share) {
  std::string text = std::to_string(share.value / 10);
  if (share.value % 10 != 0) text += "." + std::to_string(share.value % 10);
  return text + " %";
}

std::string request_text(const Request& request) {
  std::string text;
  if (request.share == whole_device) {
    text =
        std::to_string(request.count) + (request.count == 1 ? " whole device" : " whole devices");
  } else {
    text = percent_text(request.share) + " of a device";
    if (request.count > 1) text = std::to_string(request.count) + " times " + text;
  }
  if (request.memory.value > 0) text += " with " + gib_text(request.memory);
  for (std::size_t i = 0; i < request.models.size(); ++i) {
    text += (i == 0 ? " (" : " or ") + request.models[i];
  }
  return request.models.empty() ? text : text + ")";
}

// What the devices that this shape may use could give at most, now.
struct Best {
  std::int32_t whole_on_node = 0, whole = 0, usable = 0, protected_whole = 0;
  MilliGpu share{0};  // of a device with memory enough
  MiB memory{0};      // of a device with share enough
};

Best best_of(const PoolState& state, const Shape& shape) {
  Best best;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeRoom room = room_of(state, NodeId(n), shape);
    std::int32_t whole = 0;
    for (const DeviceRoom& device : room.devices) {
      if (!device.allowed) continue;
      ++best.usable;
      const Take take = take_of(state, shape.request, device.capacity);
      whole += device.share == whole_device ? 1 : 0;
      if (device.memory >= take.memory) best.share = std::max(best.share, device.share);
      if (device.share >= take.share) best.memory = std::max(best.memory, device.memory);
    }
    best.whole += whole;
    best.whole_on_node = std::max(best.whole_on_node, whole);
  }
  return best;
}

std::string plan_text(const PoolState& state, const Plan& plan) {
  std::string text = "devices are claimed; waiting for ";
  Time last(0);
  for (std::size_t i = 0; i < plan.victims.size(); ++i) {
    const Victim& victim = plan.victims[i];
    text += (i == 0 ? "" : ", ") + state.tasks.at(victim.task).spec.name + " (" +
            std::string(name_of(victim.mode)) + ")";
    last = std::max(last, victim.release_by);
  }
  const std::int64_t left = std::max<std::int64_t>(0, (last - state.now).value / 1'000'000);
  return text + ", expected within " + std::to_string(left) + " s";
}

}  // namespace

WaitCode wait_code_of(const PoolState& state, const TaskState& task) {
  if (task.phase != Phase::waiting) return WaitCode::none;
  if (!task.shape.valid()) return WaitCode::not_considered;
  if (state.plans.contains(task.id)) return WaitCode::yield_pending;
  if (task.not_before > state.now) return WaitCode::backoff;
  const WaitCode code = state.wait_codes[task.shape.value];
  return code == WaitCode::none ? WaitCode::not_considered : code;
}

std::int64_t place_in_queue(const PoolState& state, const TaskState& task) {
  if (task.phase != Phase::waiting || !task.shape.valid()) return 0;
  std::int64_t ahead = 0;
  const QueueKey key{task.submitted, task.id};
  const auto& index = *state.index;
  for (auto s = index.waiting_shapes.first(); s; s = index.waiting_shapes.at_or_after(*s + 1)) {
    const TierId tier = state.shapes[*s].tier;
    if (tier > task.tier) continue;
    const auto& queue = index.waiting[*s];
    ahead += tier < task.tier ? static_cast<std::int64_t>(queue.size())
                              : std::distance(queue.begin(), queue.lower_bound(key));
  }
  return ahead + 1;
}

std::string explain_wait(const PoolState& state, const TaskState& task) {
  const WaitCode code = wait_code_of(state, task);
  if (code == WaitCode::none) return {};
  if (code == WaitCode::yield_pending) return plan_text(state, state.plans.at(task.id));
  if (code == WaitCode::backoff) {
    return "starts again " + std::to_string((task.not_before - state.now).value / 1'000'000) +
           " s from now, after: " + task.detail;
  }
  const std::string need = "needs " + request_text(task.spec.request);
  if (code == WaitCode::not_considered) return need + "; it is looked at next";
  const Shape& shape = state.shape(task.shape);
  const Best best = best_of(state, shape);
  const std::string whole = std::to_string(best.whole) + " of " + std::to_string(best.usable) +
                            " usable devices are wholly free";
  switch (code) {
    case WaitCode::no_such_device:
      return need + "; no usable device could serve it now";
    case WaitCode::compute:
      return need + "; memory would fit, but the freest such device has " +
             percent_text(best.share) + " of its compute left";
    case WaitCode::memory:
      return need + "; compute would fit, but the freest such device has " + gib_text(best.memory) +
             " left";
    case WaitCode::fragmented:
      return need + "; " + whole + ", at most " + std::to_string(best.whole_on_node) +
             " on one node";
    case WaitCode::guard:
      return need + "; it would fit on devices of the inference guard (" +
             std::to_string(state.spec.inference_guard_min) +
             "), which training never takes; outside it " + whole;
    case WaitCode::buffer:
      return need +
             "; it would fit on lendable devices, which only tasks that release within a "
             "checkpoint interval may use; outside them " +
             whole;
    case WaitCode::dedicated_full:
      return need + " of the dedicated partition; there " + whole;
    default:
      return need + "; " + whole;
  }
}

// ---- what would start it ---------------------------------------------------------------------

namespace {

bool starts_after(const PoolState& state, TaskId id, const Unblock& unblock, Time now) {
  PoolState copy(state);
  apply_unblock(copy, unblock, now);
  const TaskState* task = copy.tasks.find(id);
  return task != nullptr && task->phase != Phase::waiting;
}

// Running tasks in the order in which their end would cost least: lighter tiers and newer first.
std::vector<TaskId> likely_to_end(const PoolState& state, const TaskState& task) {
  const std::uint8_t roles = allowed_roles(state.shape(task.shape));
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
    const auto& models = shape.request.models;
    if (!models.empty() && std::find(models.begin(), models.end(), model.name) == models.end()) {
      continue;
    }
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
  if (task.service.valid()) {
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
    case Unblock::Kind::unknown:
      break;
  }
}

Unblock find_unblock(const PoolState& state, TaskId id, Time now) {
  const TaskState& task = state.tasks.at(id);
  if (task.phase != Phase::waiting || !task.shape.valid()) return {};
  if (const auto plan = state.plans.find(id); plan != state.plans.end()) {
    Unblock unblock;
    unblock.kind = Unblock::Kind::end_tasks;
    for (const Victim& victim : plan->second.victims) unblock.tasks.push_back(victim.task);
    return unblock;
  }
  Unblock unblock;
  if (task.not_before > now) {
    unblock.kind = Unblock::Kind::in_time;
    unblock.at = task.not_before;
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

std::string to_text(const PoolState& state, const Unblock& unblock) {
  switch (unblock.kind) {
    case Unblock::Kind::in_time:
      return "nothing to do: it starts again by itself";
    case Unblock::Kind::resume_pool:
      return "resume the pool (neap resume)";
    case Unblock::Kind::end_tasks: {
      std::string text = "it starts when ";
      for (std::size_t i = 0; i < unblock.tasks.size(); ++i) {
        text += (i == 0 ? "" : ", ") + state.tasks.at(unblock.tasks[i]).spec.name;
      }
      return text + (unblock.tasks.size() == 1 ? " ends" : " end");
    }
    case Unblock::Kind::add_devices:
      return "it starts with " + std::to_string(unblock.devices) + " more " + unblock.model +
             (unblock.devices == 1 ? " device" : " devices on one node");
    case Unblock::Kind::unknown:
      break;
  }
  return "no single change that neap tried would start it";
}

}  // namespace neap
