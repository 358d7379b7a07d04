#include "core/rules/explain.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "core/rules/chain.h"
#include "core/rules/keep_room.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/scale.h"
#include "core/rules/starts.h"
#include "core/rules/teams.h"

namespace neap {

namespace {

std::string gib_text(MiB memory) {
  if (memory.value % 1024 == 0) return std::to_string(memory.value / 1024) + " GiB";
  return std::to_string(memory.value) + " MiB";
}

std::string share_text(MilliGpu share) {
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
    text = share_text(request.share) + " of a device";
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

// ---- the lane of forced starts ----------------------------------------------------------------

// What its devices have free for a shape that may not use them now; nothing where it may.
std::optional<Best> in_lane(const PoolState& state, const Shape& shape) {
  const bool uses_it = (allowed_roles(state, shape) & role_bit(Role::lane)) != 0;
  if (state.index->lane.empty() || shape.dedicated || uses_it) return std::nullopt;
  Shape there = shape;
  there.purpose = Purpose::batch;
  there.lane = LaneUse::forced;
  return best_of(state, there);
}

std::string lane_text(const PoolState& state, const Shape& shape) {
  const auto lane = in_lane(state, shape);
  if (!lane || lane->usable == 0) return {};
  const bool whole = shape.request.share == whole_device;
  if (whole ? lane->whole == 0 : lane->share < shape.request.share) return {};
  const std::string free = whole ? std::to_string(lane->whole) + " of " : "room on one of ";
  const std::string text = "; " + free + std::to_string(lane->usable) +
                           " devices of the lane of forced starts (fairness.lane) " +
                           (whole && lane->whole != 1 ? "are free, " : "is free, ");
  if (shape.purpose != Purpose::batch) return text + "which carries batch training alone";
  if (shape.lane == LaneUse::borrows) return text + "for a task that is forced to start there";
  return text + "which only tasks borrow that can leave it within " +
         std::to_string(lane_within(state.spec).value / 1'000'000) + " s at any time";
}

// More than all that it may ever use could give, were they all free.
bool out_of_reach(const PoolState& state, const TaskState& task, const Best& best) {
  const std::int32_t count = task.spec.request.count;
  if (best.usable == 0 || count <= best.usable) return false;
  if (task.bound == BoundCode::issued) return false;  // the lane has room for it
  const Shape& shape = state.shape(task.shape);
  const auto lane = shape.lane == LaneUse::borrows ? in_lane(state, shape) : std::nullopt;
  return !lane || count > best.usable + lane->usable;
}

// ---- who would have to yield -------------------------------------------------------------------

// Lighter tasks that hold a device which the shape may use, by why they are not asked.
struct Lighter {
  std::int64_t all = 0, shielded = 0, late = 0, guaranteed = 0;
};

Lighter lighter_tasks(const PoolState& state, const Shape& shape) {
  Lighter out;
  const PreemptSpec& preempt = state.spec.preempt;
  const Time needed_by = state.now + preempt.checkpoint_interval + preempt.grace;
  const TeamRights rights(state, shape);
  std::set<TaskId> seen;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeRoom room = room_of(state, NodeId(n), shape);
    for (const DeviceRoom& device : room.devices) {
      if (!device.allowed) continue;
      for (const Tenant& tenant : state.device(device.device).tenants) {
        const TaskState& other = state.tasks.at(tenant.task);
        if (!may_yield_to(state, other, shape) || !seen.insert(other.id).second) continue;
        ++out.all;
        if (is_protected(state, other, state.now)) {
          ++out.shielded;
        } else if (!cheapest_offer(state, other, state.now, needed_by)) {
          ++out.late;
        } else if (TeamRights::Taken taken; !rights.take(other, held_milli(other), taken)) {
          ++out.guaranteed;
        }
      }
    }
  }
  return out;
}

std::string count_text(std::int64_t count, const char* one, const char* more) {
  return std::to_string(count) + (count == 1 ? one : more);
}

// What keeps others from being asked to yield, where the last search found nobody.
std::string yield_text(const PoolState& state, const TaskState& task) {
  if (task.phase == Phase::waiting && fails_to_start(state, task)) {
    return "; the last " + std::to_string(state.service(task.service).failures) +
           " starts of its service failed: nobody is asked to yield for one more";
  }
  const bool searched = task.phase == Phase::waiting && task.shape.valid() && !task.awaits_stages &&
                        !state.plans.contains(task.id) &&
                        state.preempt_retry_at[task.shape.value] > state.now;
  if (!searched) return {};
  const Shape& shape = state.shape(task.shape);
  if (out_of_reach(state, task, best_of(state, shape))) return {};
  const Lighter lighter = lighter_tasks(state, shape);
  if (lighter.all == 0) return "; no lighter task holds a device that would do";
  const std::string hold = "; " +
                           count_text(lighter.all, " lighter task holds", " lighter tasks hold") +
                           " such devices";
  std::string kept;
  if (lighter.shielded > 0) {
    kept = std::to_string(lighter.shielded) + " in a protected window or out of budget";
  }
  if (lighter.late > 0) {
    kept +=
        (kept.empty() ? "" : ", ") + std::to_string(lighter.late) + " that cannot leave in time";
  }
  if (lighter.guaranteed > 0) {
    kept += (kept.empty() ? "" : ", ") + std::to_string(lighter.guaranteed) +
            " within the guarantee of its team";
  }
  if (lighter.shielded + lighter.late + lighter.guaranteed == lighter.all)
    return hold + ", and none is asked: " + kept;
  return hold + (kept.empty() ? "" : " (" + kept + ")") +
         ", and what may be asked to yield is not enough in one place";
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
    const std::int64_t expected = expected_of(state, team);
    if (!text.empty() || expected >= team.guarantee) return;
    text = "; team " + team.name + " has " + devices_text(expected) + " of its " +
           devices_text(team.guarantee) + " guaranteed devices";
    if (expected + milli_of(shape.request) > team.guarantee) {
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
  if (code == WaitCode::starts) {
    const bool one = task.spec.request.count == 1;
    return need + (one ? ", which is there; " : ", which are there; ") + held_back_text(state);
  }
  const Shape& shape = state.shape(task.shape);
  if (code == WaitCode::team_limit) return need + limit_text(state, shape);
  const Best best = best_of(state, shape);
  if (out_of_reach(state, task, best)) {
    const bool no_guard = state.spec.inference_guard_min > 0 && shape.purpose != Purpose::inference;
    const bool no_lane = in_lane(state, shape).has_value() && shape.lane != LaneUse::borrows;
    std::string text =
        need + "; only " + std::to_string(best.usable) + " usable devices may ever serve it";
    if (no_guard || no_lane) {
      text += std::string(", those of ") + (no_guard ? "the inference guard" : "") +
              (no_guard && no_lane ? " and " : "") + (no_lane ? "the lane of forced starts" : "") +
              " not among them";
    }
    return text + ": it cannot start unless there are more";
  }
  const std::string whole = std::to_string(best.whole) + " of " + std::to_string(best.usable) +
                            " usable devices are wholly free";
  switch (code) {
    case WaitCode::no_such_device:
      return need + "; no usable device could serve it now";
    case WaitCode::compute:
      return need + "; memory would fit, but the freest such device has " + share_text(best.share) +
             " of its compute left";
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
      return need + "; " + (shape.request.share < whole_device ? "none has so much left" : whole);
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
  const bool for_devices = task.shape.valid() && code > WaitCode::not_considered &&
                           code != WaitCode::yield_pending && code != WaitCode::backoff &&
                           code != WaitCode::team_limit && code != WaitCode::starts;
  if (for_devices) text += lane_text(state, state.shape(task.shape)) + yield_text(state, task);
  return text;
}

}  // namespace neap
