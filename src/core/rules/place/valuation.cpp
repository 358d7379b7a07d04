#include "core/rules/place/valuation.h"

#include <bit>
#include <cstddef>

namespace neap::leftover {

namespace {

// The potential of the devices that are partly used.
std::int64_t shared_potential(const std::array<std::int32_t, idle_steps>& row, const Supply& node) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < node.devices; ++i) {
    const std::int32_t idle = node.idle[i];
    sum += (node.unused >> i & 1U) != 0 ? 0 : row[step_of(idle)];
  }
  return sum;
}

std::int64_t free_by_device(const Valuation& valuation, std::int32_t free_milli,
                            std::int32_t devices) {
  constexpr std::int64_t thousandth = potential_unit / whole;
  if (devices == 0) return 0;
  return (2 * valuation.fuller * thousandth * free_milli + devices) / (2 * std::int64_t{devices});
}

struct Devices {
  DeviceMask mask = 0;
  std::int64_t change = 0;  // of the potential of devices alone
  std::int32_t opened = 0;
};

// Shares of several devices, or of one: those by which the potential rises least; of equals the
// one with the most free, and of these the first.
class ShareChoice {
 public:
  ShareChoice(const Supply& node, const Demand& demand,
              const std::array<std::int32_t, idle_steps>& row, std::int64_t one_unused)
      : node_(node), each_(demand.each), row_(row), one_unused_(one_unused) {}

  // `opening` is what else is lost by the first wholly free device that is opened.
  [[nodiscard]] Devices one_of(DeviceMask mask, std::int64_t opening) const {
    Devices best{0, INT64_MAX, 0};
    std::int32_t idle_of_best = 0;
    for (; mask != 0; mask &= mask - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(mask));
      const std::int32_t idle = node_.idle[i];
      if (idle < each_) continue;
      const bool opens = (node_.unused >> i & 1U) != 0;
      const std::int64_t now = opens ? one_unused_ : row_[step_of(idle)];
      const std::int64_t change = row_[step_of(idle - each_)] - now + (opens ? opening : 0);
      if (change < best.change || (change == best.change && idle > idle_of_best)) {
        best = {1U << i, change, opens ? 1 : 0};
        idle_of_best = idle;
      }
    }
    return best;
  }

  [[nodiscard]] Devices some_of(DeviceMask mask, std::int32_t count, std::int64_t opening) const {
    Devices chosen;
    for (; count > 0; --count) {
      const Devices next = one_of(mask & ~chosen.mask, opening);
      chosen.mask |= next.mask;
      chosen.change += next.change;
      chosen.opened += next.opened;
    }
    return chosen;
  }

 private:
  const Supply& node_;
  std::int32_t each_;
  const std::array<std::int32_t, idle_steps>& row_;
  std::int64_t one_unused_;
};

}  // namespace

std::int64_t potential(const Valuation& valuation, const Supply& node) {
  const LeftoverTable& table = valuation.table;
  const std::int32_t unused = node.count_unused();
  std::int64_t sum = valuation.reserve.unusable(node.model, node.cpu, node.free, unused) +
                     shared_potential(table.values[row_of_shared(node.cpu)], node);
  if (unused > 0) {
    sum += std::int64_t{unused} * table.values[row_of_unused(node.cpu, node.free)][idle_steps - 1];
  }
  return sum;
}

Placement best_placement(const Valuation& valuation, const Supply& node, std::int64_t before,
                         const Demand& demand) {
  const LeftoverTable& table = valuation.table;
  const std::int32_t cpu = node.cpu - demand.cpu;
  const std::int32_t free = node.free - demand.milli();
  const std::int32_t unused = node.count_unused();
  const auto& row = table.values[row_of_shared(cpu)];
  const std::int64_t one_unused = table.values[row_of_unused(cpu, free)][idle_steps - 1];
  const std::int64_t all = shared_potential(row, node) + unused * one_unused;
  const std::int64_t base = before - all - free_by_device(valuation, free, node.devices);
  const auto lost = [&](std::int32_t left) {
    return valuation.reserve.unusable(node.model, cpu, free, left);
  };
  const DeviceMask mask = node.allowed(demand);
  if (demand.count == 0 || demand.each == whole) {
    return {base + demand.count * one_unused - lost(unused - demand.count),
            lowest(node.unused & mask, demand.count), demand.count};
  }
  const std::int64_t kept = lost(unused);
  const std::int64_t opening = unused > 0 ? lost(unused - 1) - kept : 0;
  const ShareChoice choice(node, demand, row, one_unused);
  const Devices devices = demand.count == 1 ? choice.one_of(mask, opening)
                                            : choice.some_of(mask, demand.count, opening);
  return {base - kept - devices.change, devices.mask, devices.opened};
}

}  // namespace neap::leftover
