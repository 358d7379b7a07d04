#include "core/rules/defragment.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/model/pool_index.h"
#include "core/rules/departure.h"
#include "core/rules/place.h"

namespace neap {

namespace {

constexpr std::size_t most_moves = 8;  // for one cell

struct Tenants {
  std::vector<TaskId> tasks;
  Elsewhere where;
};

// A cell and who leaves it at what cost; where they go is searched for last, as it takes longest.
struct Clearing {
  Consolidation what;
  Tenants tenants;
};

// Nothing: somebody on these devices may not be moved now.
std::optional<Clearing> leave_all(const PoolState& state, Tenants tenants, Time now) {
  if (tenants.tasks.empty() || tenants.tasks.size() > most_moves) return std::nullopt;
  Consolidation out;
  out.stuck_until = now;
  const auto& waited_for = state.index->plans_of_victim;
  for (const TaskId id : tenants.tasks) {
    const Departure departure = departure_of(state, state.tasks.at(id), now);
    if (!departure.move || waited_for.contains(id)) return std::nullopt;
    out.moves.push_back({id, {}, *departure.move});
    out.cost += departure.move->cost;
    out.stuck_until = std::max(out.stuck_until, departure.end);
  }
  return Clearing{std::move(out), std::move(tenants)};
}

// Those who leave have other places, found one after the other.
std::optional<Consolidation> with_places(const PoolState& state, Clearing cell) {
  for (Move& move : cell.what.moves) {
    move.to = destination_of(state, state.tasks.at(move.task), cell.tenants.where);
    if (move.to.empty()) return std::nullopt;
    cell.tenants.where.taken.emplace_back(move.task, move.to);
  }
  return std::move(cell.what);
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

namespace {

std::optional<Clearing> clear_device(const PoolState& state, DeviceId id, Time now) {
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
  auto cell = leave_all(state, std::move(tenants), now);
  if (!cell) return std::nullopt;
  cell->what.node = device.node;
  cell->what.devices = {id};
  return cell;
}

std::optional<Clearing> clear_node(const PoolState& state, NodeId id, const NodeUse& use,
                                   Time now) {
  if (use.used.empty()) return std::nullopt;
  std::set<TaskId> tasks;
  for (const DeviceId device : use.used) {
    for (const Tenant& tenant : state.device(device).tenants) tasks.insert(tenant.task);
  }
  Tenants tenants = tenants_of(tasks);
  tenants.where.not_on = id;
  auto cell = leave_all(state, std::move(tenants), now);
  if (!cell) return std::nullopt;
  cell->what.node = id;
  cell->what.devices = use.used;
  return cell;
}

}  // namespace

std::optional<Consolidation> consolidate_device(const PoolState& state, DeviceId id, Time now) {
  auto cell = clear_device(state, id, now);
  return cell ? with_places(state, std::move(*cell)) : std::nullopt;
}

std::optional<Consolidation> consolidate_node(const PoolState& state, NodeId id, Time now) {
  const auto use = use_of(state, id);
  auto cell = use ? clear_node(state, id, *use, now) : std::nullopt;
  return cell ? with_places(state, std::move(*cell)) : std::nullopt;
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

namespace {

std::int32_t free_on(const PoolState& state, const NodeState& node) {
  std::int32_t free = 0;
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceState& d = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
    const bool counts =
        is_usable(state, d) && d.role == Role::core && d.tenants.empty() && !is_claimed(d);
    free += counts ? 1 : 0;
  }
  return free;
}

// The most milli-devices of one demand that would be served if the free devices on a node rose so.
Wide served_by(const std::vector<Lack>& lacks, std::int32_t before, std::int32_t after) {
  Wide most = 0;
  for (const Lack& lack : lacks) {
    const bool served = before / lack.devices < after / lack.devices;
    if (served) most = std::max<Wide>(most, static_cast<Wide>(lack.tasks) * lack.devices);
  }
  return most;
}

}  // namespace

std::int64_t gain_of(const PoolState& state, const Consolidation& cell,
                     const std::vector<Lack>& lacks, Time now) {
  const std::int32_t before = free_on(state, state.node(cell.node));
  const std::int32_t after = before + static_cast<std::int32_t>(cell.devices.size());
  const Micros horizon = state.spec.defragment.horizon;
  Micros saved =
      cell.stuck_until == Time::never() ? horizon : std::min(horizon, cell.stuck_until - now);
  for (const Move& move : cell.moves) {
    saved = std::min(saved, horizon - (move.offer.release_by - now));
  }
  if (saved <= Micros(0)) return 0;
  const Wide gain = served_by(lacks, before, after) * saved.value;
  return static_cast<std::int64_t>(std::min<Wide>(gain, std::int64_t{1} << 62));
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
  // Places are searched for only where they would matter.
  const auto offer = [&](std::optional<Clearing> cell) {
    if (!cell) return;
    const std::int64_t gain = gain_of(state, cell->what, lacking, now);
    if (!is_worth(gain, cell->what.cost)) return;
    const DomainId domain = state.node(cell->what.node).domain;
    const std::int64_t value = gain - cell->what.cost;
    const auto known = best.find(domain);
    if (known != best.end() && value <= known->second.value) return;
    auto found = with_places(state, std::move(*cell));
    if (found) best.insert_or_assign(domain, Best{std::move(*found), value});
  };
  const auto all = static_cast<std::uint32_t>(state.nodes.size());
  for (std::uint32_t i = 0; i < std::min(nodes.count, all); ++i) {
    const NodeId id((nodes.first + i) % all);
    const NodeState& node = state.node(id);
    if (busy.contains(node.domain)) continue;
    const std::int32_t free = free_on(state, node);
    if (served_by(lacking, free, node.count) == 0) continue;
    if (const auto use = use_of(state, id)) offer(clear_node(state, id, *use, now));
    if (served_by(lacking, free, free + 1) == 0) continue;
    for (std::int32_t d = 0; d < node.count; ++d) {
      const DeviceId device(node.first.value + static_cast<std::uint32_t>(d));
      offer(clear_device(state, device, now));
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
