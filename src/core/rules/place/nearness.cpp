#include "core/rules/place/nearness.h"

#include <algorithm>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/place.h"

namespace neap {

namespace {

// Devices with the same weights that are looked at, and nodes proposed.
constexpr int most_devices_looked_at = 256;
constexpr std::size_t most_kin = 16;
constexpr std::size_t most_domains = 4;
constexpr std::size_t most_of_domain = 8;

bool is_excluded(const PoolState& state, const Shape& shape, NodeId node) {
  const auto& exclude = shape.request.near.exclude;
  return !exclude.empty() &&
         std::binary_search(exclude.begin(), exclude.end(), state.node(node).name);
}

// Whether as many devices as are asked for are linked and have such a share left.
bool has_free_pair(const PoolState& state, const Shape& shape, NodeId id) {
  const NodeState& node = state.node(id);
  const auto begin = state.devices.begin() + node.first.value;
  const auto end = begin + node.count;
  const auto is_free = [&](const DeviceState& d) { return free_share(d) >= shape.request.share; };
  return std::any_of(begin, end, [&](const DeviceState& first) {
    return first.pair >= 0 && std::count_if(begin, end, [&](const DeviceState& d) {
                                return d.pair == first.pair && is_free(d);
                              }) >= shape.request.count;
  });
}

void add_once(std::vector<NodeId>& nodes, NodeId node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

// Where the same weights are: devices with room beside them first, then other devices of such
// nodes.
void add_kin(const PoolState& state, const Shape& shape, std::vector<NodeId>& out) {
  const Request& request = shape.request;
  const auto found = state.index->weights.find(request.near.weights);
  if (request.near.weights.empty() || found == state.index->weights.end()) return;
  std::vector<NodeId> others;
  int looked_at = 0;
  for (const auto& [id, tenants] : found->second) {
    if (++looked_at > most_devices_looked_at || out.size() == most_kin) break;
    const DeviceState& device = state.device(id);
    if (!node_may(state, shape, device.node)) continue;
    const bool has_room = is_usable(state, device) && free_share(device) >= request.share &&
                          free_memory(state, device) >= request.memory;
    add_once(has_room ? out : others, device.node);
  }
  for (const NodeId node : others) {
    if (out.size() == most_kin) return;
    add_once(out, node);
  }
}

// Of a group so many in a fault domain are no loss that hurts (S14): an eighth.
constexpr std::int32_t bearable_part = 8;

struct Crowd {
  bool full = false;       // one more would be more than its loss may take
  std::int32_t order = 0;  // those that are not full: the most crowded first; others last
  DomainId domain;
  auto operator<=>(const Crowd&) const = default;
};

// Of the fault domains, those with the most of the group that may have one more, so that other
// nodes stay whole; then those with the fewest, so that the loss of one leaves as many of a
// service's replicas as can be.
std::vector<Crowd> best_domains(const PoolState& state, const GroupIndex& group) {
  std::vector<Crowd> all;
  std::int32_t members = 1;  // and the one that is placed
  for (std::uint16_t d = 0; d < state.domains.size(); ++d) {
    all.push_back({false, group.members(Cell::domain, d), DomainId(d)});
    members += all.back().order;
  }
  const std::int32_t most = (members + bearable_part - 1) / bearable_part;
  for (Crowd& crowd : all) {
    crowd.full = crowd.order >= most;
    if (!crowd.full) crowd.order = -crowd.order;
  }
  std::sort(all.begin(), all.end());
  return all;
}

void add_spread(const PoolState& state, const Shape& shape, std::vector<NodeId>& out) {
  const GroupIndex* group = group_index(state, shape);
  if (shape.purpose != Purpose::inference || group == nullptr || state.domains.size() < 2) return;
  const std::uint8_t roles = allowed_roles(state, shape);
  std::size_t domains = 0;
  for (const Crowd& crowd : best_domains(state, *group)) {
    std::size_t added = 0;
    for (const ModelIndex& model : state.index->models) {
      // The guard before the buffer before the core, as inference takes them.
      for (std::size_t r = role_count; r-- > 0;) {
        if ((roles & (1U << r)) == 0) continue;
        auto at = model.open[r].lower_bound({crowd.domain, NodeId(0)});
        for (std::size_t n = 0;
             n < most_of_domain && at != model.open[r].end() && at->first == crowd.domain;
             ++n, ++at) {
          if (!node_may(state, shape, at->second)) continue;
          add_once(out, at->second);
          ++added;
        }
      }
    }
    domains += added > 0 ? 1 : 0;
    if (domains == most_domains) return;
  }
}

}  // namespace

const GroupIndex* group_index(const PoolState& state, const Shape& shape) {
  const std::string& group = shape.request.near.group;
  if (group.empty()) return nullptr;
  const auto found = state.index->groups.find(group);
  return found == state.index->groups.end() ? nullptr : &found->second;
}

bool is_kept_off(const PoolState& state, const Shape& shape, NodeId id) {
  if (is_excluded(state, shape, id)) return true;
  const GroupIndex* group = group_index(state, shape);
  if (group == nullptr) return false;
  const NodeState& node = state.node(id);
  const Nearness& near = shape.request.near;
  if (near.per_domain > 0 && group->members(Cell::domain, node.domain.value) >= near.per_domain) {
    return true;
  }
  return near.apart >= Cell::node &&
         group->members(near.apart, cell_of(state, near.apart, node.first)) > 0;
}

bool node_may(const PoolState& state, const Shape& shape, NodeId id) {
  const Request& request = shape.request;
  if (needs_host(request)) {
    const bool may_span =
        std::any_of(state.models.begin(), state.models.end(),
                    [&](const ModelState& m) { return m.per_node < request.count; });
    const std::int32_t wanted = may_span ? 1 : request.count;
    if (devices_for(request, free_host(state.node(id))) < wanted) return false;
  }
  if (request.near.within == Cell::pair && request.count > 1 && !has_free_pair(state, shape, id)) {
    return false;
  }
  return !is_kept_off(state, shape, id);
}

std::vector<NodeId> preferred_nodes(const PoolState& state, const Shape& shape) {
  std::vector<NodeId> nodes;
  add_kin(state, shape, nodes);
  add_spread(state, shape, nodes);
  return nodes;
}

}  // namespace neap
