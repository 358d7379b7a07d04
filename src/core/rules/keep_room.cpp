#include "core/rules/keep_room.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/departure.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/teams.h"

namespace neap {

namespace {

constexpr std::size_t most_nodes = 128;        // looked at in one search
constexpr std::size_t most_gang_nodes = 1024;  // likewise for a gang
constexpr std::int64_t minute_us = 60'000'000;
constexpr std::int64_t useful_restores = 9;  // so that nine tenths of the time are useful
constexpr std::uint64_t stride = 97;         // between the first nodes of one minute and the next

struct Resident {
  const TaskState* task = nullptr;
  Victim victim;
};

// Whether tasks of a shape have a place elsewhere now, asked once for most nodes.
class Places {
 public:
  explicit Places(const PoolState& state) : state_(state) {}

  bool elsewhere(const TaskState& task, NodeId node) {
    const auto [known, is_new] = found_.try_emplace(task.shape);
    if (is_new) {
      const auto slots = destination_of(state_, task, {});
      if (!slots.empty()) known->second = state_.device(slots.front().device).node;
    }
    if (known->second != node) return known->second.valid();
    Elsewhere where;
    where.not_on = node;
    return !destination_of(state_, task, where).empty();
  }

 private:
  const PoolState& state_;
  std::map<ShapeId, NodeId> found_;  // none: there is none
};

// One node, and who would have to leave it.
class NodeView {
 public:
  NodeView(const PoolState& state, const Shape& shape, NodeId node, ModelId model, Time now,
           Places& places)
      : state_(state), shape_(shape), room_(room_of(state, node, shape)), places_(places) {
    std::set<TaskId> seen;
    for (DeviceRoom& device : room_.devices) {
      const DeviceState& d = state.device(device.device);
      const bool spoken_for = std::any_of(d.tenants.begin(), d.tenants.end(), [&](const Tenant& t) {
        return state.index->plans_of_victim.contains(t.task);
      });
      if (d.model != model || d.claimed_share > MilliGpu(0) || spoken_for) device.allowed = false;
      if (!device.allowed) continue;
      for (const Tenant& tenant : d.tenants) {
        if (seen.insert(tenant.task).second) add_resident(state.tasks.at(tenant.task), now);
      }
    }
    std::sort(residents_.begin(), residents_.end(), [](const Resident& a, const Resident& b) {
      if (a.victim.release_by != b.victim.release_by) {
        return a.victim.release_by < b.victim.release_by;
      }
      return a.victim.task < b.victim.task;
    });
  }

  // The first moment at which `count` devices are free, and what has to go for it.
  std::optional<Room> first_room(std::int32_t count) const {
    if (place(residents_.size(), {}, count).empty()) return std::nullopt;
    std::size_t low = 0, high = residents_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (place(middle, {}, count).empty()) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    std::set<TaskId> staying;
    for (std::size_t i = low; i-- > 0;) {
      staying.insert(residents_[i].victim.task);
      if (place(low, staying, count).empty()) staying.erase(residents_[i].victim.task);
    }
    Room room;
    room.slots = place(low, staying, count);
    room.expected = Time(0);
    for (std::size_t i = 0; i < low; ++i) {
      const Resident& resident = residents_[i];
      if (staying.contains(resident.victim.task)) continue;
      if (!holds_one_of(*resident.task, room.slots)) continue;
      room.victims.push_back(resident.victim);
      room.expected = std::max(room.expected, resident.victim.release_by);
    }
    return room;
  }

 private:
  void add_resident(const TaskState& task, Time now) {
    const Departure departure = departure_of(state_, task, now);
    Time gone = departure.end;
    const Time moved = departure.move ? departure.move->release_by : departure.later;
    if (moved < gone) {
      // Counted on to move, if not now then when a place becomes free.
      if (places_.elsewhere(task, room_.node)) {
        gone = moved;
      } else if (gone == Time::never()) {
        gone = std::max(moved, now + state_.spec.defragment.horizon);
      }
    }
    if (gone == Time::never()) return;
    const ReleaseMode mode = task.phase == Phase::yielding ? task.yield_mode : ReleaseMode::finish;
    residents_.push_back({&task, {task.id, mode, gone, 0}});
  }

  std::vector<Slot> place(std::size_t gone, const std::set<TaskId>& staying,
                          std::int32_t count) const {
    NodeRoom room = room_;
    for (std::size_t i = 0; i < gone; ++i) {
      const TaskState& task = *residents_[i].task;
      if (!staying.contains(task.id)) take_away(state_, task, shape_, room);
    }
    return place_on_node(state_, room, shape_, count, allowed_roles(state_, shape_));
  }

  const PoolState& state_;
  const Shape& shape_;
  NodeRoom room_;
  Places& places_;
  std::vector<Resident> residents_;
};

struct Found {
  Room room;
  NodeId node;
  bool operator<(const Found& other) const {
    if (room.expected != other.room.expected) return room.expected < other.room.expected;
    if (room.victims.size() != other.room.victims.size()) {
      return room.victims.size() < other.room.victims.size();
    }
    return node < other.node;
  }
};

class RoomSearch {
 public:
  RoomSearch(const PoolState& state, const Shape& shape, Time now)
      : state_(state), shape_(shape), now_(now), places_(state) {}

  std::optional<Room> run() {
    std::optional<Room> best;
    for (const ModelId model : allowed_models(state_, shape_.request)) {
      auto room = on_model(model);
      if (room && (!best || room->expected < best->expected)) best = std::move(room);
    }
    if (best) {
      auto& victims = best->victims;
      std::sort(victims.begin(), victims.end(),
                [](const Victim& a, const Victim& b) { return a.task < b.task; });
      const auto same = [](const Victim& a, const Victim& b) { return a.task == b.task; };
      victims.erase(std::unique(victims.begin(), victims.end(), same), victims.end());
    }
    return best;
  }

 private:
  std::optional<Room> on_model(ModelId model) {
    const std::int32_t per_node = state_.models[model.value].per_node;
    const Split split = split_of(shape_.request, per_node);
    const bool one_node = split.nodes == 1 && split.remainder == 0;
    if (!one_node && shape_.request.share < whole_device) return std::nullopt;
    const std::size_t limit =
        one_node
            ? most_nodes
            : std::min(most_gang_nodes, most_nodes + 4 * static_cast<std::size_t>(split.nodes));
    std::vector<Found> full;
    for (const NodeId node : likely_nodes(model, limit)) {
      auto room = NodeView(state_, shape_, node, model, now_, places_).first_room(split.per_node);
      if (room) full.push_back({std::move(*room), node});
    }
    std::sort(full.begin(), full.end());
    const auto nodes = static_cast<std::size_t>(split.nodes);
    if (full.size() < nodes) return std::nullopt;
    Room all;
    for (std::size_t i = 0; i < nodes; ++i) add(all, full[i].room);
    if (split.remainder > 0) {
      auto rest =
          rest_of(model, split.remainder, {full.begin(), full.begin() + split.nodes}, limit);
      if (!rest) return std::nullopt;
      add(all, *rest);
    }
    return all;
  }

  std::optional<Room> rest_of(ModelId model, std::int32_t count, const std::vector<Found>& used,
                              std::size_t limit) {
    std::optional<Found> best;
    for (const NodeId node : likely_nodes(model, limit)) {
      if (std::any_of(used.begin(), used.end(), [&](const Found& f) { return f.node == node; })) {
        continue;
      }
      auto room = NodeView(state_, shape_, node, model, now_, places_).first_room(count);
      if (!room) continue;
      Found found{std::move(*room), node};
      if (!best || found < *best) best = std::move(found);
    }
    if (!best) return std::nullopt;
    return std::move(best->room);
  }

  static void add(Room& all, const Room& part) {
    all.slots.insert(all.slots.end(), part.slots.begin(), part.slots.end());
    all.victims.insert(all.victims.end(), part.victims.begin(), part.victims.end());
    all.expected = std::max(all.expected, part.expected);
  }

  std::vector<NodeId> likely_nodes(ModelId model, std::size_t limit) const {
    const auto& buckets =
        state_.index->models[model.value].whole[mask_slot(allowed_roles(state_, shape_))];
    const std::uint64_t minutes = static_cast<std::uint64_t>(now_.us / minute_us);
    const auto start = static_cast<std::uint32_t>(minutes * stride % state_.nodes.size());
    std::vector<NodeId> out;
    for (std::size_t f = buckets.size(); f-- > 0 && out.size() < limit;) {
      for (auto n = buckets[f].at_or_after(start); n && out.size() < limit;
           n = buckets[f].at_or_after(*n + 1)) {
        out.emplace_back(*n);
      }
      for (auto n = buckets[f].first(); n && *n < start && out.size() < limit;
           n = buckets[f].at_or_after(*n + 1)) {
        out.emplace_back(*n);
      }
    }
    return out;
  }

  const PoolState& state_;
  const Shape& shape_;
  Time now_;
  Places places_;
};

}  // namespace

bool needs_room_kept(const PoolState& state, const TaskState& task) {
  if (task.purpose == Purpose::inference || task.dedicated) return false;
  for (std::size_t t = task.tier.value; t < state.newest_placed.size(); ++t) {
    if (state.newest_placed[t] > task.submitted) return true;
  }
  const Shape& shape = state.shape(task.shape);
  const std::uint8_t roles = allowed_roles(state, shape);
  std::int64_t free = 0;
  for (const ModelId model : allowed_models(state, shape.request)) {
    const ModelIndex& index = state.index->models[model.value];
    for (std::size_t r = 0; r < role_count; ++r) {
      free += (roles & (1U << r)) != 0 ? index.free_milli[r] : 0;
    }
  }
  return free >= shape.request.share.value * shape.request.count;
}

std::optional<Room> find_room(const PoolState& state, const Shape& shape, Time now) {
  if (state.nodes.empty()) return std::nullopt;
  return RoomSearch(state, shape, now).run();
}

namespace {

constexpr int most_lending_nodes = 8;  // of one gang's room, asked

// As if `plan` held nothing of the node.
void give_back(const PoolState& state, const Plan& plan, NodeRoom& room) {
  for (const Slot& slot : plan.slots) {
    const DeviceState& device = state.device(slot.device);
    if (device.node != room.node) continue;
    const Slot held = held_of(state, plan, slot);
    DeviceRoom& kept = room.devices[static_cast<std::size_t>(device.index)];
    kept.share += held.share;
    kept.memory += held.memory;
  }
  const NodePart part{room.node, devices_on(state, plan.slots, room.node)};
  room.host = room.host.plus(held_of(state, plan, part));
}

std::vector<Slot> place_on_kept(const PoolState& state, const Plan& plan, const Shape& shape,
                                int& nodes) {
  const auto parts = parts_of(state, plan.slots);
  for (std::size_t i = 0; i < parts.size() && i < most_lending_nodes && nodes > 0; ++i) {
    --nodes;
    NodeRoom room = room_of(state, parts[i].node, shape);
    give_back(state, plan, room);
    auto slots =
        place_on_node(state, room, shape, shape.request.count, allowed_roles(state, shape));
    if (!slots.empty()) return slots;
  }
  return {};
}

}  // namespace

Time needed_at(const Plan& plan, Time now) {
  Time last = now;
  for (const Victim& victim : plan.victims) {
    if (victim.release_by != Time::never()) last = std::max(last, victim.release_by);
  }
  return last;
}

namespace {
// Nothing: only borrowers are left, and they give it back. What is lent anew until a borrower has
// left goes round among them for ever.
std::optional<Time> last_tenant_leaves(const Plan& plan, Time now) {
  std::optional<Time> last;
  for (const Victim& victim : plan.victims) {
    if (std::binary_search(plan.lent_to.begin(), plan.lent_to.end(), victim.task)) continue;
    const bool known = victim.release_by != Time::never();
    last = std::max(last.value_or(now), known ? victim.release_by : now);
  }
  return last;
}
}  // namespace

std::optional<Loan> find_loan(const PoolState& state, const TaskState& task, Time now, int& nodes) {
  if (state.index->reserved.empty() || state.pause.active) return std::nullopt;
  if (task.purpose == Purpose::inference || task.dedicated) return std::nullopt;
  const Shape& shape = state.shape(task.shape);
  const PreemptSpec& preempt = state.spec.preempt;
  const Micros restore = release_times(state, task, now).restore;
  const auto work = remaining_work(task, now);
  const Micros before = task.checkpoint_path.empty() ? Micros(0) : restore;
  const Time ends = work ? now + before + *work : Time::never();
  const Time useful = now + std::max(preempt.protect_min, restore * useful_restores);
  for (const TaskId id : state.index->reserved) {
    const Plan& plan = state.plans.at(id);
    const auto needed = last_tenant_leaves(plan, now);
    if (!needed) continue;
    const bool ends_in_time = ends <= *needed;
    const bool can_be_asked = preempt.enabled && task.releasable && useful <= *needed;
    if (!ends_in_time && !can_be_asked) continue;
    if (state.tier(task.tier).weight > state.tier(state.tasks.at(id).tier).weight) continue;
    auto slots = place_on_kept(state, plan, shape, nodes);
    if (!slots.empty()) return Loan{std::move(slots), id, ends_in_time ? ends : Time::never()};
  }
  return std::nullopt;
}

bool stands_in_the_way(const PoolState& state, const Plan& plan, const Shape& demand, Time now) {
  const PreemptSpec& preempt = state.spec.preempt;
  const Time needed_by = now + preempt.checkpoint_interval + preempt.grace;
  const TeamRights rights(state, demand);
  std::set<NodeId> nodes;
  for (const Slot& slot : plan.slots) nodes.insert(state.device(slot.device).node);
  for (const NodeId node : nodes) {
    NodeRoom room = room_of(state, node, demand);
    std::set<ModelId> models;
    for (const DeviceRoom& device : room.devices) {
      models.insert(state.device(device.device).model);
    }
    give_back(state, plan, room);
    TeamRights::Taken taken;  // on this node: it alone would be enough
    for (const Victim& victim : plan.victims) {
      const TaskState& task = state.tasks.at(victim.task);
      if (preempt.enabled && may_yield_to(state, task, demand, rights.taking()) &&
          rights.may_ask(task) && cheapest_offer(state, task, now, needed_by) &&
          rights.take(task, held_milli(task), taken)) {
        take_away(state, task, demand, room);
      }
    }
    for (const ModelId model : models) {
      const Split split = split_of(demand.request, state.models[model.value].per_node);
      if (!place_on_node(state, room, demand, split.per_node, allowed_roles(state, demand))
               .empty()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace neap
