// Which devices are the inference guard and the elastic buffer (SPEC D4), as fixed counts. The
// guard is spread over fault domains in whole nodes, so that the loss of one leaves a part of it
// (S14); devices without training are taken first. Where too few devices are found, all are
// guard and nothing is lent (S1).
#pragma once

#include <vector>

#include "core/model/state.h"

namespace neap {

struct Roles {
  std::vector<DeviceId> guard, buffer, lane;  // sorted
  bool operator==(const Roles&) const = default;
};
[[nodiscard]] Roles assign_roles(const PoolState& state);
// Guard and buffer are as large as they can be now. In a large pool that is enough: spreading
// them anew is a pass over all devices, which no single node that joins is worth.
[[nodiscard]] bool roles_are_full(const PoolState& state);
inline constexpr std::size_t spread_anew_up_to = 4'096;  // devices
[[nodiscard]] Roles current_roles(const PoolState& state);

// Conditions of the pool that follow from devices: guard_unmet, devices_missing.
[[nodiscard]] std::map<std::string, std::string> pool_conditions(const PoolState& state);

}  // namespace neap
