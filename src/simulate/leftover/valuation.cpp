#include "simulate/leftover/valuation.h"

#include <cstddef>

namespace neap::simulate {

namespace {

// The potential of the devices that are partly used.
std::int64_t shared_potential(const std::array<std::int32_t, idle_steps>& row, const Node& node) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < node.devices; ++i) {
    const std::int32_t idle = node.idle[i];
    sum += idle == whole ? 0 : row[step_of(idle)];
  }
  return sum;
}

std::int64_t free_by_device(const Valuation& valuation, std::int32_t free_milli,
                            std::int32_t devices) {
  constexpr std::int64_t thousandth = potential_unit / whole;
  if (devices == 0) return 0;
  return (2 * valuation.fuller * thousandth * free_milli + devices) / (2 * std::int64_t{devices});
}

}  // namespace

std::int64_t potential(const Valuation& valuation, const Node& node) {
  const LeftoverTable& table = valuation.table;
  std::int64_t sum = valuation.reserve.unusable(node.model, node.cpu, node.free, node.unused) +
                     shared_potential(table.values[row_of_shared(node.cpu)], node);
  if (node.unused > 0) {
    sum += std::int64_t{node.unused} *
           table.values[row_of_unused(node.cpu, node.free)][idle_steps - 1];
  }
  return sum;
}

Placement best_placement(const Valuation& valuation, const Node& node, std::int64_t before,
                         const Demand& demand) {
  const LeftoverTable& table = valuation.table;
  const std::int32_t cpu = node.cpu - demand.cpu;
  const std::int32_t free = node.free - demand.milli();
  const auto& row = table.values[row_of_shared(cpu)];
  const std::int64_t one_unused = table.values[row_of_unused(cpu, free)][idle_steps - 1];
  const std::int64_t all = shared_potential(row, node) + node.unused * one_unused;
  const std::int64_t base = before - free_by_device(valuation, free, node.devices);
  const auto lost = [&](std::int32_t unused) {
    return valuation.reserve.unusable(node.model, cpu, free, unused);
  };
  if (!demand.shares()) {
    return {base - (all - demand.count * one_unused) - lost(node.unused - demand.count),
            first_unused(node, demand.count), demand.count};
  }
  // Of devices that give the same, the one with the most free, and of these the first.
  const std::int64_t lost_shared = lost(node.unused);
  const std::int64_t lost_opened = node.unused > 0 ? lost(node.unused - 1) : 0;
  std::int64_t least = INT64_MAX;
  std::int32_t idle_of_best = 0;
  std::size_t best = 0;
  for (std::size_t i = 0; i < node.devices; ++i) {
    const std::int32_t idle = node.idle[i];
    if (idle < demand.each) continue;
    const std::int64_t now = idle == whole ? one_unused : row[step_of(idle)];
    const std::int64_t after =
        all - now + row[step_of(idle - demand.each)] + (idle == whole ? lost_opened : lost_shared);
    if (after < least || (after == least && idle > idle_of_best)) {
      least = after;
      idle_of_best = idle;
      best = i;
    }
  }
  return {base - least, 1U << best, idle_of_best == whole ? 1 : 0};
}

}  // namespace neap::simulate
