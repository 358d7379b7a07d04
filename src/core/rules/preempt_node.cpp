#include "core/rules/preempt_node.h"

#include <algorithm>

#include "core/rules/preempt_host.h"
#include "core/rules/preempt_outlook.h"

namespace neap {

namespace {

// A bound is measured whenever its node changes, so it may take only so long.
constexpr std::int64_t cells_per_bound = 4'000;

struct NodeRange {
  DeviceId first;
  std::uint32_t count = 0;
  [[nodiscard]] bool holds(DeviceId d) const { return d.value - first.value < count; }
  [[nodiscard]] std::uint32_t position(DeviceId d) const { return d.value - first.value; }
};

NodeRange range_of(const PoolState& state, NodeId id) {
  const NodeState& node = state.node(id);
  return {node.first, static_cast<std::uint32_t>(node.count)};
}

void describe_devices(const PoolState& state, NodeId node, const Shape& demand, NodeProblem& out) {
  out.request = demand.request;
  out.room = room_of(state, node, demand);
  out.cover.clear();
  out.victims.clear();
  out.spans.clear();
  out.host_frees.clear();
  const std::size_t devices = out.room.devices.size();
  out.cover.devices.reserve(devices);
  out.cover.pieces.reserve(2 * devices);
  out.cover.candidates.reserve(2 * devices);
  for (const DeviceRoom& room : out.room.devices) {
    const Take take = take_of(state, demand.request, room.capacity);
    const bool shared = take.share < whole_device;
    CoverDevice& device = out.cover.devices.emplace_back();
    device.usable = room.allowed && (!shared || room.capacity >= state.spec.share_min_memory);
    device.lacks.share = (take.share - room.share).value;
    device.lacks.memory = (take.memory - room.memory).value;
    device.lacks.strangers = room.strangers;
  }
}

// Each task once, at the first of its devices that the demand could use; if it is after the host
// too, at the first of all.
template <class Visit>
void for_tenants(const PoolState& state, const NodeRange& range, const NodeProblem& problem,
                 Visit&& visit) {
  const bool all = needs_host(problem.request);
  const auto counts = [&](const Slot& slot) {
    return range.holds(slot.device) &&
           (all || problem.cover.devices[range.position(slot.device)].usable);
  };
  for (std::uint32_t i = 0; i < range.count; ++i) {
    if (!all && !problem.cover.devices[i].usable) continue;
    const DeviceId device(range.first.value + i);
    for (const Tenant& tenant : state.device(device).tenants) {
      const TaskState& task = state.tasks.at(tenant.task);
      const auto first = std::find_if(task.slots.begin(), task.slots.end(), counts);
      if (first != task.slots.end() && first->device == device) visit(task);
    }
  }
}

std::uint32_t nodes_of(const PoolState& state, const TaskState& task) {
  std::uint32_t count = 0;
  NodeId last;
  for (const Slot& slot : task.slots) {  // those of one node stand together
    const NodeId node = state.device(slot.device).node;
    if (node != last) ++count;
    last = node;
  }
  return count;
}

void add_candidate(const TaskState& task, const Shape& demand, const NodeRange& range,
                   std::int64_t price, NodeProblem& problem) {
  CoverProblem& out = problem.cover;
  CoverCandidate candidate{price, static_cast<std::uint32_t>(out.pieces.size()), 0};
  const bool stranger = task.spec.request.trust_domain != demand.request.trust_domain;
  for (const Slot& slot : task.slots) {
    if (!range.holds(slot.device)) continue;
    out.pieces.push_back(
        {range.position(slot.device), {slot.share.value, slot.memory.value, stranger ? 1 : 0}});
    ++candidate.count;
  }
  out.candidates.push_back(candidate);
  problem.host_frees.push_back(host_part(task.spec.request, candidate.count));
}

// Whether the host would be enough with all of them gone.
bool host_reaches(const NodeProblem& problem, std::int32_t devices) {
  HostPart host = problem.room.host;
  for (const HostPart& frees : problem.host_frees) host = host.plus(frees);
  return host.covers(host_part(problem.request, devices));
}

}  // namespace

void read_node(const PoolState& state, NodeId node, const Shape& demand, Time now, Time needed_by,
               Killing killing, NodeProblem& out) {
  read_node(state, node, demand, now, needed_by, killing, TeamRights(state, demand), out);
}

void read_node(const PoolState& state, NodeId node, const Shape& demand, Time now, Time needed_by,
               Killing killing, const TeamRights& rights, NodeProblem& out) {
  describe_devices(state, node, demand, out);
  const NodeRange range = range_of(state, node);
  for_tenants(state, range, out, [&](const TaskState& task) {
    if (!is_candidate(state, task, demand, rights.taking()) || !rights.may_ask(task)) return;
    const auto offer = offer_by(outlook_of(state, task, now), needed_by, killing);
    if (!offer) return;
    const Victim victim{task.id, offer->mode, offer->release_by, offer->cost};
    if (!rights.allows(std::span(&victim, 1))) return;
    out.victims.push_back(victim);
    out.spans.push_back(nodes_of(state, task));
    add_candidate(task, demand, range, offer->cost, out);
  });
}

void keep_candidates(const std::vector<bool>& keep, NodeProblem& problem) {
  std::vector<CoverPiece> pieces;
  std::size_t kept = 0;
  for (std::size_t c = 0; c < keep.size(); ++c) {
    if (!keep[c]) continue;
    CoverCandidate candidate = problem.cover.candidates[c];
    const auto first = problem.cover.pieces.begin() + candidate.first;
    candidate.first = static_cast<std::uint32_t>(pieces.size());
    pieces.insert(pieces.end(), first, first + candidate.count);
    problem.cover.candidates[kept] = candidate;
    problem.victims[kept] = problem.victims[c];
    problem.spans[kept] = problem.spans[c];
    problem.host_frees[kept] = problem.host_frees[c];
    ++kept;
  }
  problem.cover.pieces = std::move(pieces);
  problem.cover.candidates.resize(kept);
  problem.victims.resize(kept);
  problem.spans.resize(kept);
  problem.host_frees.resize(kept);
}

VictimBounds::Bound measure_bound(const PoolState& state, NodeId node, const DemandClass& demand,
                                  Time now) {
  NodeProblem problem;
  describe_devices(state, node, demand.shape, problem);
  const NodeRange range = range_of(state, node);
  VictimBounds::Bound out;
  for_tenants(state, range, problem, [&](const TaskState& task) {
    if (!is_candidate(state, task, demand.shape, demand.taking)) return;
    const std::uint32_t nodes = nodes_of(state, task);
    const Outlook outlook =
        nodes == 1 ? outlook_of(state, task, now) : widest_outlook_of(state, task, now);
    const auto offer = offer_bound(outlook, demand.horizon, demand.killing);
    out.until = std::min(out.until, offer.until);
    if (offer.cost == VictimBounds::infeasible) return;
    const bool in_part = demand.spread == Spread::many_nodes;
    add_candidate(task, demand.shape, range, in_part ? offer.cost / nodes : offer.cost, problem);
  });
  CoverSolver solver;
  Cover cover;
  Cells cells(cells_per_bound);
  solver.solve(problem.cover, demand.shape.request.count, cells, cover);
  if (cover.feasible && host_reaches(problem, demand.shape.request.count)) out.cost = cover.lower;
  return out;
}

NodeRoom room_without(const PoolState& state, NodeId node, const Shape& demand,
                      std::span<const Victim> victims) {
  NodeRoom room = room_of(state, node, demand);
  for (const Victim& victim : victims) {
    take_away(state, state.tasks.at(victim.task), demand, room);
  }
  return room;
}

std::int64_t total_cost(std::span<const Victim> victims) {
  std::int64_t sum = 0;
  for (const Victim& victim : victims) sum = add_saturated(sum, victim.cost);
  return sum;
}

}  // namespace neap
