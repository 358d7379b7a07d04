#include "core/rules/leaving.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/model/pool_index.h"
#include "core/rules/place.h"

namespace neap {

namespace {

// Nodes looked at in one search: of the tasks that leave, few have what a demand needs.
constexpr std::size_t most_left_nodes = 64;

struct Leaver {
  const TaskState* task;
  NodeId node;
};

std::vector<Leaver> leavers(const PoolState& state, Time needed_by) {
  std::vector<Leaver> out;
  for (const TaskId id : state.index->leaving) {
    const TaskState& task = state.tasks.at(id);
    if (leaves_by(task) > needed_by) continue;
    NodeId before;
    for (const Slot& slot : task.slots) {
      const NodeId node = state.device(slot.device).node;
      if (node != before) out.push_back({&task, node});
      before = node;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Leaver& a, const Leaver& b) { return a.node < b.node; });
  return out;
}

// The node once all that leave have left and all plans have what they claimed.
NodeRoom future_room(const PoolState& state, const Shape& demand, std::span<const Leaver> leaving) {
  NodeRoom room = room_of(state, leaving.front().node, demand);
  for (const Leaver& leaver : leaving) take_away(state, *leaver.task, demand, room);
  for (DeviceRoom& device : room.devices) {
    const DeviceState& d = state.device(device.device);
    device.share -= d.claimed_share - d.held_share;
    device.memory -= d.claimed_memory - d.held_memory;
  }
  const NodeState& node = state.node(room.node);
  room.host =
      room.host.minus({node.claimed_cpu - node.held_cpu, node.claimed_memory - node.held_memory});
  return room;
}

// Those whose devices it takes may not leave enough of the host: then it waits for all.
bool needs_all_of_host(const PoolState& state, const Shape& demand, const NodeRoom& room,
                       std::span<const Leaver> leaving, const std::vector<Slot>& slots) {
  if (!needs_host(demand.request)) return false;
  HostPart host = room.host;
  for (const Leaver& leaver : leaving) {
    const TaskState& task = *leaver.task;
    if (holds_one_of(task, slots)) continue;
    host = host.minus(host_part(task.spec.request, devices_on(state, task.slots, room.node)));
  }
  return !host.covers(host_part(demand.request, static_cast<std::int32_t>(slots.size())));
}

std::optional<Proposal> on_node(const PoolState& state, const Shape& demand,
                                std::span<const Leaver> leaving) {
  const NodeRoom room = future_room(state, demand, leaving);
  for (const std::uint8_t roles : role_stages(state, demand)) {
    Proposal proposal;
    proposal.slots = place_on_node(state, room, demand, demand.request.count, roles);
    if (proposal.slots.empty()) continue;
    const bool all = needs_all_of_host(state, demand, room, leaving, proposal.slots);
    for (const Leaver& leaver : leaving) {
      const TaskState& task = *leaver.task;
      if (!all && !holds_one_of(task, proposal.slots)) continue;
      const ReleaseMode mode =
          task.phase == Phase::yielding ? task.yield_mode : ReleaseMode::on_demand;
      proposal.victims.push_back({task.id, mode, leaves_by(task), 0});
    }
    std::sort(proposal.victims.begin(), proposal.victims.end(),
              [](const Victim& a, const Victim& b) { return a.task < b.task; });
    return proposal;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Proposal> find_leaving(const PoolState& state, const Shape& demand, Time needed_by) {
  const std::vector<Leaver> all = leavers(state, needed_by);
  std::size_t nodes = 0;
  for (std::size_t begin = 0; begin < all.size() && nodes < most_left_nodes; ++nodes) {
    std::size_t end = begin;
    while (end < all.size() && all[end].node == all[begin].node) ++end;
    auto found = on_node(state, demand, std::span(all).subspan(begin, end - begin));
    if (found) return found;
    begin = end;
  }
  return std::nullopt;
}

}  // namespace neap
