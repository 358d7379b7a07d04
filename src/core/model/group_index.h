// Who of a group is where (D7): tasks that hold devices, and those for whom a plan claims some.
// Derived from the state, kept by apply.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/state.h"

namespace neap {

// The number of a device's cell of this kind. A device in no pair is one by itself.
[[nodiscard]] std::uint64_t cell_of(const PoolState& state, Cell cell, DeviceId device);

// The group that a task belongs to: names of groups are those of its team. Empty: to none.
[[nodiscard]] std::string group_of(const TaskSpec& spec);

class GroupIndex {
 public:
  // One task on these devices; it counts once for each cell.
  void add(const PoolState& state, const std::vector<Slot>& slots, Cell apart);
  void remove(const PoolState& state, const std::vector<Slot>& slots, Cell apart);

  [[nodiscard]] std::int32_t members(Cell cell, std::uint64_t number) const;
  // Whether somebody is in a cell with this device that a newcomer would have to be apart from,
  // by its own wish or by theirs.
  [[nodiscard]] bool keeps_out(const PoolState& state, Cell apart, DeviceId device) const;
  [[nodiscard]] bool empty() const { return cells_.empty(); }
  bool operator==(const GroupIndex&) const = default;

 private:
  struct Count {
    std::int32_t members = 0;
    std::int32_t aloof = 0;  // those who want this very kind of cell for themselves
    bool operator==(const Count&) const = default;
  };
  void change(const PoolState& state, const std::vector<Slot>& slots, Cell apart, std::int32_t by);

  std::map<std::pair<Cell, std::uint64_t>, Count> cells_;
  std::map<Cell, std::int32_t> aloof_;  // members by what they want for themselves
};

}  // namespace neap
