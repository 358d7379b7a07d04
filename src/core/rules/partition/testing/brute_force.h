// Every layout, every subset of its instances, every way to give them to wants: what the planner
// is compared with. Written apart from it: slices are marked one by one, nothing is shared but the
// tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/rules/partition/plan.h"

namespace neap::mig::testing {

// The best score by trying all, or nothing when that would be more than `tries_max` combinations
// of the devices.
[[nodiscard]] std::optional<Score> best_by_force(std::span<const Device> devices,
                                                 std::span<const Want> wants,
                                                 std::int64_t tries_max);

// The score of a plan, found from its steps and serves alone.
[[nodiscard]] Score score_of(const Plan& plan, std::span<const Device> devices,
                             std::span<const Want> wants);

// What is wrong with a plan: a device touched that is busy, a state on the way that is not legal,
// an instance that serves twice, is busy or is not there, a want served by another profile or more
// often than asked, answers that do not add up. Empty when nothing is.
[[nodiscard]] std::vector<std::string> faults_of(const Plan& plan, std::span<const Device> devices,
                                                 std::span<const Want> wants);

// Whether these can be on a device together, by marking slices.
[[nodiscard]] bool can_be_together(const DeviceModel& model, std::span<const Place> places);

}  // namespace neap::mig::testing
