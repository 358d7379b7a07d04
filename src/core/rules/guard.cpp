#include "core/rules/guard.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

enum class Holder { inference, nobody, training };

Holder holder_of(const PoolState& state, const DeviceState& device) {
  if (device.tenants.empty()) return Holder::nobody;
  for (const Tenant& tenant : device.tenants) {
    if (state.tasks.at(tenant.task).purpose != Purpose::inference) return Holder::training;
  }
  return Holder::inference;
}

// Nodes with the last first, taken in turn from each fault domain.
std::vector<NodeId> spread_nodes(const PoolState& state) {
  std::vector<std::vector<NodeId>> by_domain(state.domains.size());
  for (std::uint32_t n = static_cast<std::uint32_t>(state.nodes.size()); n-- > 0;) {
    by_domain[state.nodes[n].domain.value].push_back(NodeId(n));
  }
  std::vector<NodeId> order;
  order.reserve(state.nodes.size());
  for (std::size_t turn = 0; order.size() < state.nodes.size(); ++turn) {
    for (const auto& nodes : by_domain) {
      if (turn < nodes.size()) order.push_back(nodes[turn]);
    }
  }
  return order;
}

// A device that serves inference as guard or buffer keeps its role; then come devices without
// training, and only then those that training must leave.
int keep_order(Role role, Holder holder) {
  const bool lent = role == Role::guard || role == Role::buffer;
  if (lent && holder == Holder::inference) return role == Role::guard ? 0 : 1;
  return holder == Holder::training ? 3 : 2;
}

}  // namespace

Roles assign_roles(const PoolState& state) {
  Roles roles;
  roles.lane = assign_lane(state);
  std::vector<DeviceId> in_order;  // of nodes
  std::vector<std::vector<DeviceId>> by_order(4);
  for (const NodeId n : spread_nodes(state)) {
    const NodeState& node = state.node(n);
    for (std::int32_t i = node.count; i-- > 0;) {
      const DeviceId id(node.first.value + static_cast<std::uint32_t>(i));
      const DeviceState& device = state.device(id);
      if (device.role == Role::dedicated || !is_usable(state, device)) continue;
      if (std::binary_search(roles.lane.begin(), roles.lane.end(), id)) continue;
      const int order = keep_order(device.role, holder_of(state, device));
      by_order[static_cast<std::size_t>(order)].push_back(id);
      in_order.push_back(id);
    }
  }
  std::vector<DeviceId> all;
  for (const auto& part : by_order) all.insert(all.end(), part.begin(), part.end());
  const auto guard = std::min(all.size(), static_cast<std::size_t>(state.spec.inference_guard_min));
  const bool unmet = all.size() < static_cast<std::size_t>(state.spec.inference_guard_min);
  const auto buffer =
      unmet ? 0 : std::min(all.size() - guard, static_cast<std::size_t>(lendable_wanted(state)));
  const auto at = [&](std::size_t n) { return all.begin() + static_cast<std::ptrdiff_t>(n); };
  roles.guard.assign(all.begin(), at(guard));
  std::sort(roles.guard.begin(), roles.guard.end());
  if (state.spec.tide.derive) {
    // It moves often. Node after node, whoever holds them: so only its end moves, nodes outside it
    // stay whole, and inference finds its way into it.
    for (const DeviceId id : in_order) {
      if (roles.buffer.size() == buffer) break;
      if (!std::binary_search(roles.guard.begin(), roles.guard.end(), id)) {
        roles.buffer.push_back(id);
      }
    }
  } else {
    roles.buffer.assign(at(guard), at(guard + buffer));
  }
  std::sort(roles.buffer.begin(), roles.buffer.end());
  return roles;
}

bool roles_are_full(const PoolState& state) {
  std::int64_t guard = 0;
  std::int64_t buffer = 0;
  for (const ModelIndex& model : state.index->models) {
    guard += model.usable[static_cast<std::size_t>(Role::guard)];
    buffer += model.usable[static_cast<std::size_t>(Role::buffer)];
  }
  const auto usable = static_cast<std::int64_t>(state.index->usable_shared);
  const std::int64_t guard_wanted = std::min<std::int64_t>(usable, state.spec.inference_guard_min);
  const bool unmet = usable < state.spec.inference_guard_min;
  const std::int64_t buffer_wanted =
      unmet ? 0 : std::min<std::int64_t>(usable - guard_wanted, lendable_wanted(state));
  const std::int64_t lane = static_cast<std::int64_t>(state.index->lane.size());
  return guard == guard_wanted && buffer == buffer_wanted && lane >= lane_wanted(state);
}

Roles current_roles(const PoolState& state) {
  Roles roles;
  for (std::uint32_t i = 0; i < state.devices.size(); ++i) {
    if (state.devices[i].role == Role::guard) roles.guard.push_back(DeviceId(i));
    if (state.devices[i].role == Role::buffer) roles.buffer.push_back(DeviceId(i));
    if (state.devices[i].role == Role::lane) roles.lane.push_back(DeviceId(i));
  }
  return roles;
}

namespace {
void note_lane(const PoolState& state, std::map<std::string, std::string>& conditions) {
  const std::int32_t wanted = state.spec.fairness.lane;
  if (wanted == 0) return;
  const auto has = static_cast<std::int64_t>(state.index->lane.size());
  if (has < wanted) {
    conditions["lane_unmet"] = "the lane of forced starts is to have " + std::to_string(wanted) +
                               " devices in whole nodes outside guard and buffer, and has " +
                               std::to_string(has);
  }
  if (!state.index->infeasible.empty()) {
    conditions["infeasible"] =
        std::to_string(state.index->infeasible.size()) +
        " waiting tasks were admitted without a promise of a start: with them the promises that "
        "were made would not hold. None is made until they have started; a larger lane "
        "(fairness.lane) makes room";
  }
}
}  // namespace

std::map<std::string, std::string> pool_conditions(const PoolState& state) {
  std::map<std::string, std::string> conditions;
  const auto usable = static_cast<std::int64_t>(state.index->usable_shared);
  const std::int64_t guard = state.spec.inference_guard_min;
  if (usable < guard) {
    conditions["guard_unmet"] = "the guard needs " + std::to_string(guard) +
                                " devices, usable are " + std::to_string(usable) +
                                ": nothing is lent to training";
  } else if (state.index->training_on_guard > 0) {
    conditions["guard_unmet"] = "training still holds " +
                                std::to_string(state.index->training_on_guard) +
                                " devices that the guard needs and is leaving them";
  }
  if (const auto learned = hours_learned(state)) {
    conditions["guard_learning"] = "the guard has learned " + std::to_string(*learned) +
                                   " hours of traffic, of a day that it needs: until then devices "
                                   "are lent to tasks alone that can leave "
                                   "in time";
  }
  std::string rolled_back;
  for (const ServiceState& service : state.services) {
    if (service.removed || service.rolled_back.empty()) continue;
    rolled_back += (rolled_back.empty() ? "" : "; ") + service.spec.name + ": " +
                   service.rolled_back + ", the version before is the service's again";
  }
  if (!rolled_back.empty()) conditions["service_rolled_back"] = rolled_back;
  note_lane(state, conditions);
  if (const std::string kept = kept_by_budget(state, state.now); !kept.empty()) {
    conditions["switch_budget"] = "the budget of switches is used up: " + kept +
                                  " keeps devices that it does not need; `neap describe SERVICE` "
                                  "shows until when";
  }
  if (usable < state.spec.total_gpus) {
    conditions["devices_missing"] = "the pool file says " + std::to_string(state.spec.total_gpus) +
                                    " devices, usable are " + std::to_string(usable);
  }
  return conditions;
}

}  // namespace neap
