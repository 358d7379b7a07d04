#include "core/rules/defragment.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/model/pool_index.h"
#include "core/rules/departure.h"
#include "core/rules/place.h"

namespace neap {

namespace {

__extension__ using Wide = __int128;

constexpr std::size_t most_moves = 8;  // for one cell
constexpr std::int64_t one_task = 1000;

struct Tenants {
  std::vector<TaskId> tasks;
  Elsewhere where;
};

// Those on these devices have other places, found one after the other.
std::optional<Consolidation> move_all(const PoolState& state, Tenants tenants, Time now) {
  Consolidation out;
  out.stuck_until = now;
  if (tenants.tasks.empty() || tenants.tasks.size() > most_moves) return std::nullopt;
  for (const TaskId id : tenants.tasks) {
    const TaskState& task = state.tasks.at(id);
    const Departure departure = departure_of(state, task, now);
    const auto& waited_for = state.index->plans_of_victim;
    if (!departure.move || waited_for.contains(id)) return std::nullopt;
    auto to = destination_of(state, task, tenants.where);
    if (to.empty()) return std::nullopt;
    tenants.where.taken.emplace_back(id, to);
    out.moves.push_back({id, std::move(to), *departure.move});
    out.cost += departure.move->cost;
    out.stuck_until = std::max(out.stuck_until, departure.end);
  }
  return out;
}

bool is_claimed(const DeviceState& device) { return device.claimed_share > MilliGpu(0); }

// Restarts of what is elsewhere take their places; what is free as a whole stays so.
Tenants tenants_of(const std::set<TaskId>& tasks) {
  Tenants out;
  out.tasks.assign(tasks.begin(), tasks.end());
  out.where.fresh = Elsewhere::Fresh::spared;
  return out;
}

struct NodeUse {
  std::int32_t free = 0;  // wholly
  std::vector<DeviceId> used;
};

std::optional<NodeUse> use_of(const PoolState& state, NodeId id) {
  const NodeState& node = state.node(id);
  NodeUse out;
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceId d(node.first.value + static_cast<std::uint32_t>(i));
    const DeviceState& device = state.device(d);
    const bool counts = is_usable(state, device) && device.role == Role::core;
    if (!counts || is_claimed(device)) return std::nullopt;
    if (device.tenants.empty()) {
      ++out.free;
    } else {
      out.used.push_back(d);
    }
  }
  return out;
}

std::int64_t tasks_of(const PoolState& state, std::int32_t devices, Time now) {
  const std::int64_t hour = now.us / hours(1).value;
  const std::int64_t passed = std::clamp<std::int64_t>(hour - state.arrivals_hour, 0, 62);
  for (const Arrivals& arrivals : state.arrivals) {
    if (arrivals.devices == devices) return arrivals.tasks >> passed;
  }
  return 0;
}

// Places for a task of so many devices on one node, in the core.
std::int64_t places_for(const PoolState& state, std::int32_t devices) {
  const std::size_t core = mask_slot(role_bit(Role::core));
  std::int64_t places = 0;
  for (const ModelIndex& model : state.index->models) {
    const auto& buckets = model.whole[core];
    for (auto f = static_cast<std::size_t>(devices); f < buckets.size(); ++f) {
      places += std::int64_t{buckets[f].size()} * (static_cast<std::int64_t>(f) / devices);
    }
  }
  return places;
}

}  // namespace

std::optional<Consolidation> consolidate_device(const PoolState& state, DeviceId id, Time now) {
  const DeviceState& device = state.device(id);
  if (!is_usable(state, device) || device.role != Role::core || is_claimed(device)) {
    return std::nullopt;
  }
  std::set<TaskId> tasks;
  for (const Tenant& tenant : device.tenants) {
    const TaskState& task = state.tasks.at(tenant.task);
    if (task.slots.size() != 1 || tenant.share == whole_device) return std::nullopt;
    tasks.insert(tenant.task);
  }
  Tenants tenants = tenants_of(tasks);
  tenants.where.not_devices = {id};
  auto out = move_all(state, std::move(tenants), now);
  if (!out) return std::nullopt;
  out->node = device.node;
  out->devices = {id};
  return out;
}

std::optional<Consolidation> consolidate_node(const PoolState& state, NodeId id, Time now) {
  const auto use = use_of(state, id);
  if (!use || use->used.empty()) return std::nullopt;
  std::set<TaskId> tasks;
  for (const DeviceId device : use->used) {
    for (const Tenant& tenant : state.device(device).tenants) tasks.insert(tenant.task);
  }
  Tenants tenants = tenants_of(tasks);
  tenants.where.not_on = id;
  auto out = move_all(state, std::move(tenants), now);
  if (!out) return std::nullopt;
  out->node = id;
  out->devices = use->used;
  return out;
}

std::vector<Lack> lacks(const PoolState& state, Time now) {
  std::vector<Lack> out;
  const Micros horizon = state.spec.defragment.horizon;
  for (const Arrivals& demand : state.arrivals) {
    if (demand.devices == 0) continue;
    // Halved with every hour, the sum is twice what comes in one.
    const Wide expected = static_cast<Wide>(tasks_of(state, demand.devices, now)) * horizon.value /
                          (2 * hours(1).value);
    const std::int64_t free = places_for(state, demand.devices) * one_task;
    const Wide lack = std::clamp<Wide>(expected - free, 0, one_task);
    if (lack > 0) out.push_back({demand.devices, static_cast<std::int64_t>(lack)});
  }
  return out;
}

std::int64_t gain_of(const PoolState& state, const Consolidation& cell,
                     const std::vector<Lack>& lacks, Time now) {
  std::int32_t before = 0;
  const NodeState& node = state.node(cell.node);
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceState& d = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
    const bool free =
        is_usable(state, d) && d.role == Role::core && d.tenants.empty() && !is_claimed(d);
    before += free ? 1 : 0;
  }
  const std::int32_t after = before + static_cast<std::int32_t>(cell.devices.size());
  const Micros horizon = state.spec.defragment.horizon;
  Micros saved =
      cell.stuck_until == Time::never() ? horizon : std::min(horizon, cell.stuck_until - now);
  for (const Move& move : cell.moves) {
    saved = std::min(saved, horizon - (move.offer.release_by - now));
  }
  if (saved <= Micros(0)) return 0;
  Wide gain = 0;
  for (const Lack& lack : lacks) {
    const bool served = before / lack.devices < after / lack.devices;
    if (served) gain = std::max<Wide>(gain, static_cast<Wide>(lack.tasks) * lack.devices);
  }
  return static_cast<std::int64_t>(std::min<Wide>(gain * saved.value, std::int64_t{1} << 62));
}

bool is_worth(std::int64_t gain, std::int64_t cost) { return gain / 3 > cost / 2; }

bool is_low_tide(const PoolState& state, Time now) {
  const PoolIndex& index = *state.index;
  if (index.training_on_guard > 0 || state.plans.size() > index.moving.size()) return false;
  for (std::uint8_t t = 0; t < state.spec.tiers.size(); ++t) {
    if (state.spec.tiers[t].purpose != Purpose::inference) continue;
    const auto first = index.waiters.lower_bound({TierId(t), QueueKey{}});
    if (first != index.waiters.end() && std::get<TierId>(*first) == TierId(t)) return false;
  }
  const std::int64_t an_hour = tasks_of(state, 0, now) / 2;
  const Wide most = static_cast<Wide>(index.usable_shared) * one_task *
                    state.spec.defragment.quiet_below.value / all_ppm.value;
  return an_hour <= std::max<Wide>(most, one_task);
}

namespace {

std::set<DomainId> busy_domains(const PoolState& state) {
  std::set<DomainId> out;
  for (const TaskId id : state.index->moving) {
    if (state.plans.at(id).for_task.valid()) continue;
    const TaskState& task = state.tasks.at(id);
    for (const Slot& slot : task.slots) {
      out.insert(state.node(state.device(slot.device).node).domain);
    }
  }
  return out;
}

bool shares_a_device(const Consolidation& a, const Consolidation& b) {
  for (const Move& x : a.moves) {
    for (const Move& y : b.moves) {
      for (const Slot& s : x.to) {
        for (const Slot& t : y.to) {
          if (s.device == t.device) return true;
        }
      }
    }
  }
  return false;
}

bool goes_to(const Consolidation& a, const Consolidation& b) {
  for (const Move& move : a.moves) {
    for (const Slot& slot : move.to) {
      if (std::find(b.devices.begin(), b.devices.end(), slot.device) != b.devices.end()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<Consolidation> find_consolidations(const PoolState& state, Window nodes, Time now) {
  const std::vector<Lack> lacking = lacks(state, now);
  if (lacking.empty() || state.nodes.empty()) return {};
  const std::set<DomainId> busy = busy_domains(state);
  struct Best {
    Consolidation cell;
    std::int64_t value = 0;
  };
  std::map<DomainId, Best> best;
  const auto offer = [&](std::optional<Consolidation> cell) {
    if (!cell) return;
    const std::int64_t gain = gain_of(state, *cell, lacking, now);
    if (!is_worth(gain, cell->cost)) return;
    Best& known = best[state.node(cell->node).domain];
    const std::int64_t value = gain - cell->cost;
    if (known.cell.moves.empty() || value > known.value) known = {std::move(*cell), value};
  };
  const auto all = static_cast<std::uint32_t>(state.nodes.size());
  for (std::uint32_t i = 0; i < std::min(nodes.count, all); ++i) {
    const NodeId id((nodes.first + i) % all);
    const NodeState& node = state.node(id);
    if (busy.contains(node.domain)) continue;
    offer(consolidate_node(state, id, now));
    for (std::int32_t d = 0; d < node.count; ++d) {
      offer(consolidate_device(state, DeviceId(node.first.value + static_cast<std::uint32_t>(d)),
                               now));
    }
  }
  std::vector<Consolidation> out;
  for (auto& [domain, candidate] : best) {
    const Consolidation& cell = candidate.cell;
    const bool apart = std::none_of(out.begin(), out.end(), [&](const Consolidation& other) {
      return shares_a_device(cell, other) || goes_to(cell, other) || goes_to(other, cell);
    });
    if (apart) out.push_back(std::move(candidate.cell));
  }
  return out;
}

}  // namespace neap
