#include "core/model/pool_index.h"

#include <algorithm>

#include "core/model/check.h"
#include "core/model/codec.h"
#include "core/model/team_index.h"

namespace neap {

namespace {

void move_node(PoolState& state, ModelId id, std::size_t slot, NodeId node, std::uint8_t from,
               std::uint8_t to) {
  ModelIndex& model = state.index->models[id.value];
  auto& buckets = model.whole[slot];
  const std::size_t need = static_cast<std::size_t>(std::max(from, to)) + 1;
  if (buckets.size() < need) buckets.resize(need);
  buckets[from].erase(node.value);
  buckets[to].insert(node.value);
  model.free_whole[slot] += static_cast<std::uint32_t>(to) - from;
  const NodeState& n = state.node(node);
  CellCounts& cells = model.cells[slot];
  cells.free_by_rack.add(n.rack.value, to - from);
  cells.free_by_domain.add(n.domain.value, to - from);
  const std::int32_t full = state.models[id.value].per_node;
  const std::int32_t change = (to >= full ? 1 : 0) - (from >= full ? 1 : 0);
  if (change == 0) return;
  cells.full_by_rack.add(n.rack.value, change);
  cells.full_by_domain.add(n.domain.value, change);
}

PoolIndex::NodeCount& count_of(PoolIndex& index, NodeId node, ModelId model) {
  auto& counts = index.node_counts[node.value];
  for (auto& count : counts) {
    if (count.model == model) return count;
  }
  return counts.emplace_back(PoolIndex::NodeCount{model, {}, {}});
}

void add_to_partial(ModelIndex& model, const PoolIndex::DeviceKey& key, DeviceId id) {
  model.partial[static_cast<std::size_t>(key.role)][key.share].emplace(key.memory, id.value);
}

void drop_from_partial(ModelIndex& model, const PoolIndex::DeviceKey& key, DeviceId id) {
  auto& by_share = model.partial[static_cast<std::size_t>(key.role)];
  const auto bucket = by_share.find(key.share);
  NEAP_CHECK(bucket != by_share.end());
  bucket->second.erase({key.memory, id.value});
  if (bucket->second.empty()) by_share.erase(bucket);
}

void count_whole(PoolState& state, const DeviceState& device, Role role, int change) {
  auto& count = count_of(*state.index, device.node, device.model);
  for (std::size_t slot = 0; slot < role_masks.size(); ++slot) {
    if ((role_masks[slot] & (1U << static_cast<unsigned>(role))) == 0) continue;
    const std::uint8_t before = count.free[slot];
    const auto after = static_cast<std::uint8_t>(before + change);
    count.free[slot] = after;
    move_node(state, device.model, slot, device.node, before, after);
  }
}

void count_open(PoolState& state, const DeviceState& device, Role role, int change) {
  const auto r = static_cast<std::size_t>(role);
  std::uint8_t& open = count_of(*state.index, device.node, device.model).open[r];
  const bool was_open = open > 0;
  open = static_cast<std::uint8_t>(open + change);
  if (was_open == (open > 0)) return;
  auto& nodes = state.index->models[device.model.value].open[r];
  const std::pair key{state.node(device.node).domain, device.node};
  if (was_open) {
    nodes.erase(key);
  } else {
    nodes.insert(key);
  }
}

// True when the node's host has more to give than before.
bool refresh_host(PoolState& state, NodeId id) {
  HostPart& known = state.index->free_hosts[id.value];
  const HostPart now = free_host(state.node(id));
  const bool gained = !known.covers(now);
  known = now;
  return gained;
}

PoolIndex::DeviceKey key_of(const PoolState& state, const DeviceState& device) {
  PoolIndex::DeviceKey key;
  key.role = device.role;
  key.usable = is_usable(state, device);
  if (!key.usable) return key;
  key.share = free_share(device).value;
  key.memory = free_memory(state, device).value;
  key.whole = device.tenants.empty() && key.share == whole_device.value;
  key.partial = !key.whole && key.share > 0 && key.memory > 0;
  return key;
}

std::string bytes_of(const Shape& shape) {
  Encoder encoder;
  encoder.put(shape);
  return encoder.take();
}

bool has_training(const PoolState& state, const DeviceState& device) {
  return std::any_of(device.tenants.begin(), device.tenants.end(), [&](const Tenant& t) {
    return state.tasks.at(t.task).purpose != Purpose::inference;
  });
}

}  // namespace

std::size_t mask_slot(std::uint8_t mask) {
  const auto at = std::find(role_masks.begin(), role_masks.end(), mask);
  NEAP_CHECK(at != role_masks.end());
  return static_cast<std::size_t>(at - role_masks.begin());
}

void refresh_device(PoolState& state, DeviceId id) {
  auto& index = *state.index;
  DeviceState& device = state.devices[id.value];
  PoolIndex::DeviceKey& old = index.device_keys[id.value];
  const PoolIndex::DeviceKey now = key_of(state, device);
  index.victims.touch(device.node);
  index.placement_touched.insert(device.node.value);
  if (refresh_host(state, device.node)) mark_waiting(state);
  if (now == old) return;
  const int opened = (now.is_open() ? 1 : 0) - (old.is_open() ? 1 : 0);
  if (now.role != old.role && old.is_open() && now.is_open()) {
    count_open(state, device, old.role, -1);
    count_open(state, device, now.role, +1);
  } else if (opened != 0) {
    count_open(state, device, opened > 0 ? now.role : old.role, opened);
  }
  auto& model = index.models[device.model.value];
  if (old.partial) drop_from_partial(model, old, id);
  if (old.whole) count_whole(state, device, old.role, -1);
  if (old.usable) {
    --model.usable[static_cast<std::size_t>(old.role)];
    model.free_milli[static_cast<std::size_t>(old.role)] -= old.share;
    if (old.role != Role::dedicated) --index.usable_shared;
  }
  if (now.usable) {
    ++model.usable[static_cast<std::size_t>(now.role)];
    model.free_milli[static_cast<std::size_t>(now.role)] += now.share;
    if (now.role != Role::dedicated) ++index.usable_shared;
  }
  if (now.whole) count_whole(state, device, now.role, +1);
  if (now.partial) add_to_partial(model, now, id);
  const bool gained = (now.usable && !old.usable) || now.share > old.share ||
                      now.memory > old.memory || now.role != old.role;
  const bool lost = old.usable && !now.usable;
  if (now.role == Role::lane) {
    index.lane.insert(id);
  } else {
    index.lane.erase(id);
  }
  old = now;
  // With a device fewer, guard and buffer may no longer be enough for all replicas: then inference
  // may go elsewhere.
  if (gained || lost) mark_waiting(state);
}

void mark_waiting(PoolState& state) {
  auto& index = *state.index;
  for (auto s = index.waiting_shapes.first(); s; s = index.waiting_shapes.at_or_after(*s + 1)) {
    index.agenda.shapes.insert(*s);
  }
  for (const auto& [task, plan] : state.plans) index.agenda.plans.insert(task);
}

void leave_queue(PoolState& state, const TaskState& task) {
  auto& index = *state.index;
  auto& queue = index.waiting[task.shape.value];
  if (queue.erase(queue_key(task)) > 0) index.waiters.erase({task.tier, queue_key(task)});
  if (queue.empty()) index.waiting_shapes.erase(task.shape.value);
}

void refresh_queue(PoolState& state, const TaskState& task) {
  auto& index = *state.index;
  if (!task.shape.valid()) return;
  refresh_promise(state, task);
  auto& queue = index.waiting[task.shape.value];
  const QueueKey key = queue_key(task);
  const bool could_start = task.phase == Phase::waiting && task.not_before <= state.now &&
                           !state.plans.contains(task.id) && !task.awaits_stages;
  if (could_start) {
    if (queue.insert(key).second) index.agenda.shapes.insert(task.shape.value);
    index.waiters.emplace(task.tier, key);
  } else if (queue.erase(key) > 0) {
    index.waiters.erase({task.tier, key});
  }
  if (queue.empty()) {
    index.waiting_shapes.erase(task.shape.value);
  } else {
    index.waiting_shapes.insert(task.shape.value);
  }
}

ShapeId intern_shape(PoolState& state, const Shape& shape) {
  const ShapeId next(static_cast<std::uint32_t>(state.shapes.size()));
  const auto [found, is_new] = state.index->shape_ids.emplace(bytes_of(shape), next);
  if (!is_new) return found->second;
  state.shapes.push_back(shape);
  state.wait_codes.push_back(WaitCode::none);
  state.preempt_retry_at.push_back(Time(0));
  state.index->waiting.emplace_back();
  if (state.index->teams) state.index->teams->number_of(shape.team);
  return next;
}

bool counts_for(const PoolState& state, const Plan& plan, const Victim& victim) {
  return *state.index->plans_of_victim.at(victim.task).begin() == plan.task;
}

bool is_borrower(const PoolState& state, TaskId task) {
  const auto plans = state.index->plans_of_victim.find(task);
  if (plans == state.index->plans_of_victim.end()) return false;
  return std::any_of(plans->second.begin(), plans->second.end(), [&](TaskId owner) {
    const auto& lent = state.plans.at(owner).lent_to;
    return std::binary_search(lent.begin(), lent.end(), task);
  });
}

Slot held_of(const PoolState& state, const Plan& plan, const Slot& slot) {
  Slot left = slot;
  for (const Victim& victim : plan.victims) {
    if (!counts_for(state, plan, victim)) continue;
    for (const Slot& has : state.tasks.at(victim.task).slots) {
      if (has.device != slot.device) continue;
      left.share -= has.share;
      left.memory -= has.memory;
    }
  }
  return {slot.device, std::max(MilliGpu(0), left.share), std::max(MiB(0), left.memory)};
}

void refresh_claims(PoolState& state, const Plan& plan, std::int32_t sign) {
  for (const Slot& slot : plan.slots) {
    const Slot held = held_of(state, plan, slot);
    DeviceState& device = state.devices[slot.device.value];
    device.claimed_share += slot.share * sign;
    device.claimed_memory += slot.memory * sign;
    device.held_share += held.share * sign;
    device.held_memory += held.memory * sign;
  }
  refresh_host_claims(state, plan, sign);
}

void count_in_group(PoolState& state, const TaskState& task, const std::vector<Slot>& slots,
                    std::int32_t sign) {
  const std::string group = group_of(task.spec);
  if (group.empty()) return;
  auto& groups = state.index->groups;
  const Cell apart = task.spec.request.near.apart;
  if (sign > 0) {
    groups[group].add(state, slots, apart);
    return;
  }
  const auto at = groups.find(group);
  NEAP_CHECK(at != groups.end());
  at->second.remove(state, slots, apart);
  if (at->second.empty()) groups.erase(at);
  mark_waiting(state);  // who was kept out may come now
}

void count_weights(PoolState& state, const TaskState& task, std::int32_t sign) {
  const std::string& weights = task.spec.request.near.weights;
  if (weights.empty()) return;
  auto& devices = state.index->weights[weights];
  for (const Slot& slot : task.slots) {
    std::uint32_t& tenants = devices[slot.device];
    tenants += static_cast<std::uint32_t>(sign);
    if (tenants == 0) devices.erase(slot.device);
  }
  if (devices.empty()) state.index->weights.erase(weights);
}

void recount_full_nodes(PoolState& state, ModelId id) {
  ModelIndex& model = state.index->models[id.value];
  const auto full = static_cast<std::size_t>(state.models[id.value].per_node);
  for (std::size_t slot = 0; slot < role_masks.size(); ++slot) {
    CellCounts& cells = model.cells[slot];
    cells.full_by_rack.clear();
    cells.full_by_domain.clear();
    for (std::size_t f = full; f < model.whole[slot].size(); ++f) {
      const IdSet& nodes = model.whole[slot][f];
      for (auto n = nodes.first(); n; n = nodes.at_or_after(*n + 1)) {
        cells.full_by_rack.add(state.nodes[*n].rack.value, 1);
        cells.full_by_domain.add(state.nodes[*n].domain.value, 1);
      }
    }
  }
}

namespace {

void rebuild_devices(PoolState& state) {
  for (DeviceState& device : state.devices) {
    device.tenants.clear();
    device.used_share = device.held_share = device.claimed_share = MilliGpu(0);
    device.used_memory = device.held_memory = device.claimed_memory = MiB(0);
  }
  for (NodeState& node : state.nodes) {
    node.used_cpu = node.held_cpu = node.claimed_cpu = 0;
    node.used_memory = node.held_memory = node.claimed_memory = MiB(0);
  }
  state.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) return;
    for (const Slot& slot : task.slots) {
      DeviceState& device = state.devices[slot.device.value];
      device.tenants.push_back({task.id, slot.share, slot.memory});
      device.used_share += slot.share;
      device.used_memory += slot.memory;
    }
    count_host(state, task, +1);
    count_in_group(state, task, task.slots, +1);
    count_weights(state, task, +1);
  });
  for (const auto& [task, plan] : state.plans) {
    for (const Victim& victim : plan.victims) {
      state.index->plans_of_victim[victim.task].insert(task);
    }
  }
  for (const auto& [task, plan] : state.plans) {
    refresh_claims(state, plan, +1);
    count_in_group(state, state.tasks.at(task), plan.slots, +1);
  }
}

void rebuild_names_and_queues(PoolState& state) {
  auto& index = *state.index;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    index.node_names.emplace(state.nodes[n].name, NodeId(n));
    index.rack_nodes[state.nodes[n].rack.value].emplace_back(n);
    index.domain_nodes[state.nodes[n].domain.value].emplace_back(n);
  }
  for (std::uint32_t d = 0; d < state.domains.size(); ++d) {
    index.domain_names.emplace(state.domains[d], d);
  }
  for (std::uint32_t r = 0; r < state.racks.size(); ++r) {
    index.rack_names.emplace(state.racks[r], r);
  }
  for (const ServiceState& service : state.services) {
    if (!service.removed) index.service_names[service.spec.name] = service.id;
    index.agenda.services.insert(service.id.value);
  }
  for (const PipelineState& pipeline : state.pipelines) {
    if (pipeline.ended == Time::never()) index.agenda.pipelines.insert(pipeline.id);
  }
  state.tasks.for_each([&](const TaskState& task) {
    if (has_ended(task.phase)) {
      index.ended.emplace(task.phase_since, task.id);
      return;
    }
    index.task_names[task.spec.name] = task.id;
    if (!task.shape.valid()) index.agenda.admit.insert(task.id);
    if (holds_devices(task.phase)) {
      index.allocations.emplace(task.allocation, task.id);
      ++index.running_by_tier[{task.tier, static_cast<std::uint8_t>(task.purpose)}];
      if (task.loading) index.loading.insert(task.id);
    }
    refresh_queue(state, task);
    refresh_timer(state, task);
  });
  for (const auto& [task, plan] : state.plans) note_plan(state, plan);
}

}  // namespace

void rebuild_index(PoolState& state) {
  state.index = std::make_unique<PoolIndex>();
  auto& index = *state.index;
  index.models.resize(state.models.size());
  index.device_keys.resize(state.devices.size());
  index.node_counts.resize(state.nodes.size());
  index.free_hosts.resize(state.nodes.size());
  index.rack_nodes.resize(state.racks.size());
  index.domain_nodes.resize(state.domains.size());
  index.waiting.resize(state.shapes.size());
  for (std::uint32_t s = 0; s < state.shapes.size(); ++s) {
    index.shape_ids.emplace(bytes_of(state.shapes[s]), ShapeId(s));
  }
  rebuild_devices(state);
  for (std::uint32_t d = 0; d < state.devices.size(); ++d) {
    const DeviceState& device = state.devices[d];
    ++index.models[device.model.value].devices;
    auto& count = count_of(index, device.node, device.model);
    for (std::size_t slot = 0; slot < role_masks.size(); ++slot) {
      auto& buckets = index.models[device.model.value].whole[slot];
      if (buckets.empty()) buckets.resize(1);
      buckets[count.free[slot]].insert(device.node.value);
    }
    refresh_device(state, DeviceId(d));
    if (device.role == Role::guard && has_training(state, device)) ++index.training_on_guard;
    if (device.foreign_low_since != Time::never()) {
      set_timer(state, TimerKind::device, d,
                device.foreign_low_since + state.spec.prefilter.back_after);
    }
    index.agenda.devices.insert(DeviceId(d));
  }
  rebuild_names_and_queues(state);
  for (std::uint32_t s = 0; s < state.shapes.size(); ++s) {
    if (state.preempt_retry_at[s] > state.now) {
      set_timer(state, TimerKind::shape, s, state.preempt_retry_at[s]);
    }
  }
  // One that has passed has fired, as those of shapes.
  if (state.guard_retry_at > state.now) {
    set_timer(state, TimerKind::guard, 0, state.guard_retry_at);
  }
  refresh_look(state, Look::room);
  refresh_look(state, Look::consolidation);
  refresh_look(state, Look::growth);
  refresh_look(state, Look::lane);
  refresh_look(state, Look::deadlines);
  refresh_tide_timer(state);
  refresh_drill_timer(state);
  rebuild_teams(state);
  refresh_start_timers(state);
  index.victims.touch_all();
  index.agenda.adoption = state.adoption.stage != AdoptionStage::time;
  index.agenda.guard = true;  // roles were assigned with the record that called for it
  mark_waiting(state);
}

bool index_is_current(const PoolState& state) {
  const PoolState fresh(state);
  const PoolIndex& a = *state.index;
  const PoolIndex& b = *fresh.index;
  for (std::size_t d = 0; d < state.devices.size(); ++d) {
    const DeviceState& x = state.devices[d];
    const DeviceState& y = fresh.devices[d];
    if (x.used_share != y.used_share || x.used_memory != y.used_memory ||
        x.held_share != y.held_share || x.held_memory != y.held_memory ||
        x.claimed_share != y.claimed_share || x.claimed_memory != y.claimed_memory ||
        x.tenants.size() != y.tenants.size()) {
      return false;
    }
  }
  for (std::size_t n = 0; n < state.nodes.size(); ++n) {
    const NodeState& x = state.nodes[n];
    const NodeState& y = fresh.nodes[n];
    if (x.used_cpu != y.used_cpu || x.used_memory != y.used_memory || x.held_cpu != y.held_cpu ||
        x.held_memory != y.held_memory || x.claimed_cpu != y.claimed_cpu ||
        x.claimed_memory != y.claimed_memory) {
      return false;
    }
  }
  for (std::size_t m = 0; m < a.models.size(); ++m) {
    const ModelIndex& x = a.models[m];
    const ModelIndex& y = b.models[m];
    if (x.devices != y.devices || x.cells != y.cells || x.open != y.open) return false;
    if (x.free_whole != y.free_whole || x.partial != y.partial || x.usable != y.usable ||
        x.free_milli != y.free_milli) {
      return false;
    }
    for (std::size_t slot = 0; slot < role_masks.size(); ++slot) {
      const std::size_t n = std::max(x.whole[slot].size(), y.whole[slot].size());
      for (std::size_t f = 0; f < n; ++f) {
        const IdSet empty;
        const IdSet& p = f < x.whole[slot].size() ? x.whole[slot][f] : empty;
        const IdSet& q = f < y.whole[slot].size() ? y.whole[slot][f] : empty;
        if (!(p == q)) return false;
      }
    }
  }
  return a.device_keys == b.device_keys && a.usable_shared == b.usable_shared &&
         a.training_on_guard == b.training_on_guard && a.waiting == b.waiting &&
         a.waiting_shapes == b.waiting_shapes && a.timers == b.timers &&
         a.task_names == b.task_names && a.service_names == b.service_names &&
         a.allocations == b.allocations && a.plans_of_victim == b.plans_of_victim &&
         a.free_hosts == b.free_hosts && a.groups == b.groups && a.weights == b.weights &&
         a.rack_nodes == b.rack_nodes && a.domain_nodes == b.domain_nodes &&
         a.waiters == b.waiters && a.reserved == b.reserved && a.moving == b.moving &&
         a.ranged == b.ranged && a.lane == b.lane && a.promised == b.promised &&
         a.infeasible == b.infeasible && teams_are_equal(state, fresh) &&
         a.near_deadline == b.near_deadline && a.leaving == b.leaving && a.loading == b.loading &&
         a.ended == b.ended && a.running_by_tier == b.running_by_tier;
}

}  // namespace neap
