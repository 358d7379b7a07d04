#include "core/rules/resize.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/place.h"
#include "core/rules/preempt_cover.h"
#include "core/rules/preempt_outlook.h"
#include "core/rules/teams.h"

namespace neap {

namespace {

constexpr std::size_t most_givers = 256;       // tasks, in one search
constexpr std::size_t most_givers_nodes = 64;  // likewise

std::int32_t devices_held(const TaskState& task) {
  return static_cast<std::int32_t>(task.slots.size());
}

std::int64_t cost_of(const TaskState& task, const ReleaseTimes& times) {
  const Wide cost = static_cast<Wide>(held_milli(task)) * (times.stall + times.restore).value;
  return static_cast<std::int64_t>(std::min<Wide>(cost, saturated_cost));
}

// How it would yield to be resized. Never by being killed, nor by its own end.
std::optional<Offer> offer_to_resize(const PoolState& state, const TaskState& task, Time now,
                                     Time by) {
  if (task.phase != Phase::running || task.purpose != Purpose::batch) return std::nullopt;
  if (!task.spec.interruptible || !task.spec.contract.any()) return std::nullopt;
  const auto& index = *state.index;
  if (index.plans_of_victim.contains(task.id) || state.plans.contains(task.id)) return std::nullopt;
  Outlook outlook = outlook_of(state, task, now);
  if (outlook.is_protected || now >= outlook.finish_only) return std::nullopt;
  outlook.finish = Time::never();
  auto offer = offer_by(outlook, by, Killing::never);
  if (offer) offer->cost = cost_of(task, release_times(state, task, now));
  return offer;
}

}  // namespace

std::vector<std::int32_t> fewer_devices(const Request& request) {
  std::vector<std::int32_t> counts;
  if (request.least <= 0) return counts;
  for (std::int32_t n = request.count; n > request.least;) {
    n = std::max(request.least, (n + 1) / 2);
    counts.push_back(n);
  }
  return counts;
}

Shape with_devices(const Shape& shape, std::int32_t devices) {
  Shape some = shape;
  const HostPart host = host_part(shape.request, devices);
  some.request.count = devices;
  some.request.least = 0;
  some.request.cpu_milli = host.cpu;
  some.request.host_memory = host.memory;
  return some;
}

Shape with_least(const Shape& shape) {
  return shape.request.least > 0 ? with_devices(shape, shape.request.least) : shape;
}

// ---- shrinking -------------------------------------------------------------------------------

namespace {

struct Giver {
  const TaskState* task = nullptr;
  Offer offer;
};

class ShrinkSearch {
 public:
  ShrinkSearch(const PoolState& state, const Shape& demand, Time now, Time needed_by)
      : state_(state), demand_(demand), rights_(state, demand) {
    const std::int32_t weight = state.tier(demand.tier).weight;
    for (const TaskId id : state.index->ranged) {
      if (givers_.size() == most_givers) break;
      const TaskState& task = state.tasks.at(id);
      if (devices_held(task) <= task.spec.request.least) continue;
      if (state.tier(task.tier).weight > weight) continue;
      // A pipeline that has begun gives nothing to who has not more weight than it (D9).
      if (chain_protects(state, task) && weight_in_chain(state, task) >= weight) continue;
      if (const auto offer = offer_to_resize(state, task, now, needed_by)) {
        givers_.push_back({&task, *offer});
      }
    }
    std::stable_sort(givers_.begin(), givers_.end(),
                     [](const Giver& a, const Giver& b) { return a.offer.cost < b.offer.cost; });
  }

  std::optional<Shrinks> run() {
    if (givers_.empty()) return std::nullopt;
    std::map<NodeId, std::vector<const Giver*>> by_node;  // the cheapest first
    for (const Giver& giver : givers_) {
      std::set<NodeId> nodes;
      for (const Slot& slot : giver.task->slots) nodes.insert(state_.device(slot.device).node);
      for (const NodeId node : nodes) by_node[node].push_back(&giver);
    }
    std::optional<Shrinks> best;
    std::size_t asked = 0;
    for (const auto& [node, givers] : by_node) {
      if (++asked > most_givers_nodes) break;
      auto found = on_node(node, givers);
      if (found && (!best || is_better(*found, *best))) best = std::move(found);
    }
    return best;
  }

 private:
  static bool is_better(const Shrinks& a, const Shrinks& b) {
    if (a.tasks.size() != b.tasks.size()) return a.tasks.size() < b.tasks.size();
    return a.cost < b.cost;
  }

  std::optional<Shrinks> on_node(NodeId node, const std::vector<const Giver*>& givers) const {
    for (const Giver* giver : givers) {
      for (const std::int32_t count : counts_of(*giver->task)) {
        auto found = with(node, {{giver, count}});
        if (found) return found;
      }
    }
    std::vector<Part> all;  // each with its least here
    for (const Giver* giver : givers) {
      const auto counts = counts_of(*giver->task);
      const auto gives_here = [&](std::int32_t count) {
        return devices_held(*giver->task) - count <= devices_on(state_, giver->task->slots, node);
      };
      const auto last = std::find_if(counts.rbegin(), counts.rend(), gives_here);
      if (last != counts.rend()) all.push_back({giver, *last});
    }
    auto found = with(node, all);
    for (std::size_t i = all.size(); found && i-- > 0;) {  // the dearest may be to spare
      std::vector<Part> fewer = all;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      auto without = with(node, fewer);
      if (!without) continue;
      all = std::move(fewer);
      found = std::move(without);
    }
    return found;
  }

  struct Part {
    const Giver* giver = nullptr;
    std::int32_t count = 0;  // that it goes on with
  };

  // Fewer than it has.
  static std::vector<std::int32_t> counts_of(const TaskState& task) {
    std::vector<std::int32_t> counts = fewer_devices(task.spec.request);
    std::erase_if(counts, [&](std::int32_t n) { return n >= devices_held(task); });
    return counts;
  }

  std::optional<Shrinks> with(NodeId node, const std::vector<Part>& parts) const {
    Shrinks out;
    NodeRoom room = room_of(state_, node, demand_);
    TeamRights::Taken taken;
    for (const Part& part : parts) {
      const TaskState& task = *part.giver->task;
      const std::int32_t gives = devices_held(task) - part.count;
      if (gives > devices_on(state_, task.slots, node)) return std::nullopt;
      if (!rights_.take(task, std::int64_t{gives} * whole_device.value, taken)) return std::nullopt;
      Shrink shrink{task.id, {}, part.giver->offer};
      std::int32_t left = gives;
      for (auto slot = task.slots.rbegin(); slot != task.slots.rend(); ++slot) {
        const DeviceState& device = state_.device(slot->device);
        if (left == 0 || device.node != node) {
          shrink.kept.insert(shrink.kept.begin(), *slot);
          continue;
        }
        --left;
        DeviceRoom& freed = room.devices[static_cast<std::size_t>(device.index)];
        freed.share += slot->share;
        freed.memory += slot->memory;
      }
      room.host = room.host.plus(host_part(task.spec.request, gives));
      out.cost = add_saturated(out.cost, part.giver->offer.cost);
      out.tasks.push_back(std::move(shrink));
    }
    out.slots =
        place_on_node(state_, room, demand_, demand_.request.count, allowed_roles(state_, demand_));
    if (out.slots.empty()) return std::nullopt;
    return out;
  }

  const PoolState& state_;
  const Shape& demand_;
  TeamRights rights_;
  std::vector<Giver> givers_;  // the cheapest first
};

}  // namespace

std::optional<Shrinks> find_shrinks(const PoolState& state, const Shape& demand, Time now,
                                    Time needed_by) {
  if (state.index->ranged.empty() || demand.dedicated) return std::nullopt;
  return ShrinkSearch(state, demand, now, needed_by).run();
}

// ---- growing ---------------------------------------------------------------------------------

namespace {

// Its work goes on so many times as fast.
bool is_worth_growing(const TaskState& task, const ReleaseTimes& times, std::int32_t devices) {
  if (!times.remaining) return true;
  const Wide saved = static_cast<Wide>(times.remaining->value) * (devices - devices_held(task));
  return 2 * saved > Wide{3} * (times.stall + times.restore).value * devices;
}

std::vector<Slot> room_to_grow(const PoolState& state, const TaskState& task, const Shape& shape) {
  const NodeId node = state.device(task.slots.front().device).node;
  const std::int32_t here = devices_on(state, task.slots, node);
  if (here == devices_held(task)) {
    NodeRoom room = room_of(state, node, shape);
    take_away(state, task, shape, room);
    auto slots =
        place_on_node(state, room, shape, shape.request.count, allowed_roles(state, shape));
    if (!slots.empty()) return slots;
  }
  return place(state, shape).slots;
}

}  // namespace

std::optional<Growth> find_growth(const PoolState& state, const TaskState& task, Time now) {
  const PreemptSpec& preempt = state.spec.preempt;
  const auto offer =
      offer_to_resize(state, task, now, now + preempt.checkpoint_interval * 2 + preempt.grace);
  if (!offer) return std::nullopt;
  const ReleaseTimes times = release_times(state, task, now);
  const Shape& all = state.shape(task.shape);
  std::vector<std::int32_t> counts = fewer_devices(task.spec.request);
  counts.insert(counts.begin(), task.spec.request.count);
  for (const std::int32_t n : counts) {
    if (n <= devices_held(task) || !is_worth_growing(task, times, n)) break;
    const std::int64_t more = std::int64_t{n - devices_held(task)} * whole_device.value;
    if (limit_in_the_way(state, all.team, more)) continue;
    auto slots = room_to_grow(state, task, with_devices(all, n));
    if (!slots.empty()) return Growth{std::move(slots), *offer};
  }
  return std::nullopt;
}

bool others_wait_for(const PoolState& state, const TaskState& task) {
  const auto& index = *state.index;
  const std::string& model = state.models[state.device(task.slots.front().device).model.value].name;
  for (auto s = index.waiting_shapes.first(); s; s = index.waiting_shapes.at_or_after(*s + 1)) {
    const Shape& shape = state.shapes[*s];
    if (state.wait_codes[*s] == WaitCode::team_limit || shape.dedicated) continue;
    if (names_model(shape.request.models, model)) return true;
  }
  return std::any_of(state.plans.begin(), state.plans.end(),
                     [&](const auto& entry) { return entry.second.kind == PlanKind::reservation; });
}

}  // namespace neap
