#include "core/rules/place/supply.h"

namespace neap::leftover {

bool Supply::fits(const Demand& demand) const {
  if (cpu < demand.cpu) return false;
  if (demand.models != 0 && (demand.models >> model & 1U) == 0) return false;
  if (demand.count == 0) return true;
  const DeviceMask mask = allowed(demand);
  if (demand.each == whole) return std::popcount(unused & mask) >= demand.count;
  std::int32_t enough = 0;
  for (DeviceMask left = mask; left != 0; left &= left - 1) {
    enough += idle[static_cast<std::size_t>(std::countr_zero(left))] >= demand.each ? 1 : 0;
  }
  return enough >= demand.count;
}

}  // namespace neap::leftover
