#include "core/rules/explain.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "core/rules/chain.h"
#include "core/rules/keep_room.h"
#include "core/rules/place.h"
#include "core/rules/starts.h"
#include "core/rules/teams.h"

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
  if (request.least > 0) text += " (" + std::to_string(request.least) + " will do)";
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

// Whose work is in the way is for its owner to know.
std::string plan_text(const PoolState& state, const TaskState& task) {
  const Plan& plan = state.plans.at(task.id);
  if (plan.kind == PlanKind::move) return "moved to make room: it goes on at once elsewhere";
  if (plan.kind == PlanKind::resize) {
    return "goes on at once with " + std::to_string(plan.slots.size()) + " of the " +
           std::to_string(task.spec.request.count) + " devices that it asks for";
  }
  const bool kept = plan.kind == PlanKind::reservation;
  std::string text = kept ? "devices are kept for it, as others passed it; waiting for "
                          : "devices are claimed; waiting for ";
  for (std::size_t i = 0; i < plan.victims.size(); ++i) {
    const Victim& victim = plan.victims[i];
    const TaskSpec& other = state.tasks.at(victim.task).spec;
    const bool own = other.owner.uid == task.spec.owner.uid;
    text += (i == 0 ? "" : ", ") + (own ? other.name : "another user's task") + " (" +
            std::string(name_of(victim.mode)) + ")";
  }
  const std::int64_t left = (needed_at(plan, state.now) - state.now).value / 1'000'000;
  return text + ", expected within " + std::to_string(left) + " s";
}

}  // namespace

WaitCode wait_code_of(const PoolState& state, const TaskState& task) {
  if (task.phase != Phase::waiting) return WaitCode::none;
  if (task.awaits_stages) return WaitCode::stage;
  if (!task.shape.valid()) return WaitCode::not_considered;
  if (const auto plan = state.plans.find(task.id); plan != state.plans.end()) {
    const bool has_all = plan->second.victims.empty() && is_held_back(state, task);
    return has_all ? WaitCode::starts : WaitCode::yield_pending;
  }
  if (task.not_before > state.now) return WaitCode::backoff;
  const WaitCode code = state.wait_codes[task.shape.value];
  return code == WaitCode::none ? WaitCode::not_considered : code;
}

std::int64_t place_in_queue(const PoolState& state, const TaskState& task) {
  if (task.phase != Phase::waiting || !task.shape.valid() || task.awaits_stages) return 0;
  std::int64_t ahead = 0;
  const QueueKey key = queue_key(task);
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

namespace {

// More than all of them could give, were they all free.
bool out_of_reach(const Request& request, const Best& best) {
  return best.usable > 0 && request.count > best.usable;
}

std::string cell_text(Cell cell) {
  switch (cell) {
    case Cell::device:
      return "device";
    case Cell::pair:
      return "pair of linked devices";
    case Cell::node:
      return "node";
    case Cell::rack:
      return "rack";
    case Cell::domain:
      return "fault domain";
    case Cell::any:
      break;
  }
  return "pool";
}

std::string cores_text(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 != 0) text += "." + std::to_string(milli % 1000 / 100);
  return text + " cores";
}

// What hosts of nodes with a device that the shape may use could give at most.
std::string host_text(const PoolState& state, const Shape& shape) {
  HostPart most;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeRoom room = room_of(state, NodeId(n), shape);
    const bool has_device =
        std::any_of(room.devices.begin(), room.devices.end(), [&](const DeviceRoom& device) {
          const Take take = take_of(state, shape.request, device.capacity);
          return device.allowed && device.share >= take.share && device.memory >= take.memory;
        });
    if (!has_device) continue;
    most.cpu = std::max(most.cpu, room.host.cpu);
    most.memory = std::max(most.memory, room.host.memory);
  }
  const Request& request = shape.request;
  std::string wanted;
  if (request.cpu_milli > 0) wanted = cores_text(request.cpu_milli);
  if (request.host_memory.value > 0) {
    wanted += (wanted.empty() ? "" : " and ") + gib_text(request.host_memory) + " of host memory";
  }
  std::string left;
  if (request.cpu_milli > 0) left = cores_text(most.cpu);
  if (request.host_memory.value > 0) {
    left += (left.empty() ? "" : " and ") + gib_text(most.memory);
  }
  return "devices are free, but not " + wanted +
         " beside them: nodes with such a device have at most " + left + " left";
}

std::string nearness_text(const PoolState& state, const Shape& shape, WaitCode code) {
  const Nearness& near = shape.request.near;
  const std::string group = near.group.substr(near.group.find('/') + 1);
  if (code == WaitCode::host) return host_text(state, shape);
  if (code == WaitCode::excluded) {
    return "it would fit on one of the " + std::to_string(near.exclude.size()) +
           " nodes that it excludes";
  }
  if (code == WaitCode::cell) {
    return "so many are free, but not within one " + cell_text(near.within);
  }
  if (near.per_domain > 0) {
    return "it would fit where " + std::to_string(near.per_domain) + " of the group " + group +
           " are in the fault domain already";
  }
  const std::string where = "it would fit, but where others of the group " + group + " are";
  if (near.apart == Cell::any) return where + ", who want to be apart";
  return where + ", and no two may be in one " + cell_text(near.apart);
}

std::string devices_text(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 != 0) {
    const std::string part = std::to_string(1000 + milli % 1000);
    text += "." + part.substr(1, part.find_last_not_of('0'));
  }
  return text;
}

std::string limit_text(const PoolState& state, const Shape& shape) {
  const auto number = limit_in_the_way(state, shape.team, milli_of(shape.request));
  if (!number) return "; it is looked at next";
  const Team& team = state.index->teams->at(*number);
  return "; team " + team.name + " has " + devices_text(team.all.committed) + " of the " +
         devices_text(*team.limit) + " devices that it may have at most: it waits until tasks of " +
         team.name + " end";
}

// What a team below its guarantee may count on (D6).
std::string guarantee_text(const PoolState& state, const Shape& shape) {
  const TeamIndex* teams = state.index->teams.get();
  if (teams == nullptr) return {};
  std::string text;
  teams->for_chain(teams->find(shape.team).value_or(-1), [&](std::int32_t n) {
    const Team& team = teams->at(n);
    if (!text.empty() || team.all.expected >= team.guarantee) return;
    text = "; team " + team.name + " has " + devices_text(team.all.expected) + " of its " +
           devices_text(team.guarantee) + " guaranteed devices";
    if (team.all.expected + milli_of(shape.request) > team.guarantee) {
      text += ", and would have more with it: nobody of its tier is asked to yield";
    }
  });
  return text;
}

std::string shortage_text(const PoolState& state, const TaskState& task) {
  const WaitCode code = wait_code_of(state, task);
  if (code == WaitCode::none) return {};
  if (code == WaitCode::stage) return stages_text(state, task);
  if (code == WaitCode::yield_pending) return plan_text(state, task);
  if (code == WaitCode::backoff) {
    return "starts again " + std::to_string((task.not_before - state.now).value / 1'000'000) +
           " s from now, after: " + task.detail;
  }
  const std::string need = "needs " + request_text(task.spec.request);
  if (code == WaitCode::not_considered) return need + "; it is looked at next";
  if (code == WaitCode::starts) return need + ", which is there; " + held_back_text(state);
  const Shape& shape = state.shape(task.shape);
  if (code == WaitCode::team_limit) return need + limit_text(state, shape);
  const Best best = best_of(state, shape);
  if (out_of_reach(shape.request, best)) {
    return need + "; only " + std::to_string(best.usable) + " usable devices may ever serve it" +
           (state.spec.inference_guard_min > 0 ? ", those of the inference guard not among them"
                                               : "") +
           ": it cannot start unless there are more";
  }
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
    case WaitCode::adoption:
      return need + "; it would fit on devices that stage " +
             std::string(name_of(state.adoption.stage)) + " of adoption keeps for the other kind " +
             "of work; beside them " + whole;
    case WaitCode::paused:
      return need + "; others would yield for it, but the pool is paused by " + state.pause.by;
    case WaitCode::dedicated_full:
      return need + " of the dedicated partition; there " + whole;
    case WaitCode::host:
    case WaitCode::apart:
    case WaitCode::excluded:
    case WaitCode::cell:
      return need + "; " + nearness_text(state, shape, code);
    default:
      return need + "; " + whole;
  }
}

}  // namespace

std::string explain_wait(const PoolState& state, const TaskState& task) {
  std::string text = shortage_text(state, task);
  const WaitCode code = wait_code_of(state, task);
  if (task.shape.valid() && code > WaitCode::not_considered && code != WaitCode::yield_pending &&
      code != WaitCode::backoff && code != WaitCode::team_limit) {
    text += guarantee_text(state, state.shape(task.shape));
  }
  const bool none_may_yield =
      task.phase == Phase::waiting && task.shape.valid() && !task.awaits_stages &&
      !state.plans.contains(task.id) && state.preempt_retry_at[task.shape.value] > state.now &&
      !out_of_reach(task.spec.request, best_of(state, state.shape(task.shape)));
  if (none_may_yield) {
    text +=
        "; lighter tasks hold such devices, but none may yield in time: each is in a protected "
        "window, out of its budget, or nearly done";
  }
  return text;
}

}  // namespace neap
