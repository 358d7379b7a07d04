#include "core/model/group_index.h"

#include <algorithm>
#include <array>

#include "core/model/check.h"

namespace neap {

namespace {
constexpr std::array cell_kinds{Cell::device, Cell::pair, Cell::node, Cell::rack, Cell::domain};
}

std::uint64_t cell_of(const PoolState& state, Cell cell, DeviceId id) {
  constexpr std::uint64_t alone = std::uint64_t{1} << 63;
  const DeviceState& device = state.device(id);
  const NodeState& node = state.node(device.node);
  switch (cell) {
    case Cell::device:
      return id.value;
    case Cell::pair:
      if (device.pair < 0) return alone | id.value;
      return (static_cast<std::uint64_t>(device.node.value) << 32) |
             static_cast<std::uint32_t>(device.pair);
    case Cell::node:
      return device.node.value;
    case Cell::rack:
      return node.rack.value;
    case Cell::domain:
      return node.domain.value;
    case Cell::any:
      break;
  }
  return 0;
}

std::string group_of(const TaskSpec& spec) {
  const std::string& group = spec.request.near.group;
  return group.empty() ? group : spec.team + "/" + group;
}

void GroupIndex::change(const PoolState& state, const std::vector<Slot>& slots, Cell apart,
                        std::int32_t by) {
  std::vector<std::uint64_t> numbers;
  for (const Cell kind : cell_kinds) {
    numbers.clear();
    for (const Slot& slot : slots) numbers.push_back(cell_of(state, kind, slot.device));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const std::uint64_t number : numbers) {
      const auto at = cells_.try_emplace({kind, number}).first;
      at->second.members += by;
      at->second.aloof += kind == apart ? by : 0;
      NEAP_CHECK(at->second.members >= 0 && at->second.aloof >= 0);
      if (at->second.members == 0) cells_.erase(at);
    }
  }
  if (apart == Cell::any) return;
  const auto at = aloof_.try_emplace(apart).first;
  at->second += by;
  if (at->second == 0) aloof_.erase(at);
}

void GroupIndex::add(const PoolState& state, const std::vector<Slot>& slots, Cell apart) {
  change(state, slots, apart, +1);
}

void GroupIndex::remove(const PoolState& state, const std::vector<Slot>& slots, Cell apart) {
  change(state, slots, apart, -1);
}

std::int32_t GroupIndex::members(Cell cell, std::uint64_t number) const {
  const auto found = cells_.find({cell, number});
  return found == cells_.end() ? 0 : found->second.members;
}

bool GroupIndex::keeps_out(const PoolState& state, Cell apart, DeviceId device) const {
  if (apart != Cell::any && members(apart, cell_of(state, apart, device)) > 0) return true;
  for (const auto& [kind, count] : aloof_) {
    const auto found = cells_.find({kind, cell_of(state, kind, device)});
    if (found != cells_.end() && found->second.aloof > 0) return true;
  }
  return false;
}

}  // namespace neap
