// What is asked of partitionable devices: instances by profile, or by what they must hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/rules/partition/layout.h"

namespace neap::mig {

inline constexpr std::size_t wants_max = 32;
inline constexpr std::int64_t count_max = 1'000'000;
inline constexpr std::int64_t weight_max = 1'000'000;

struct Want {
  std::string profile;  // by name; empty: the smallest profile that serves `need`
  Need need;
  std::int64_t count = 0;
  std::int64_t weight = 1;  // of each instance: that of the tier
};

// Wants that the same profile serves on every model: one kind of instance, the heaviest first.
struct Kind {
  std::vector<std::int32_t> profiles;  // by model of the demand; -1: none serves there
  std::vector<std::size_t> wants;      // by falling weight, then as given
  std::int64_t count = 0;

  // Weight served by `count` instances of this kind.
  [[nodiscard]] std::int64_t worth_of(std::int64_t served, std::span<const Want> wants) const;
};

struct Demand {
  std::span<const Want> wants;
  std::vector<const DeviceModel*> models;  // those of the devices, each once
  std::vector<Kind> kinds;

  [[nodiscard]] std::size_t model_slot(const DeviceModel* model) const;
};

// invalid_argument, with "wants[2].count" as context, when a number is out of its range or a
// want names neither a profile nor a need.
[[nodiscard]] Result<void> check_wants(std::span<const Want> wants);

// The wants as kinds, for the models of these devices. The demand refers to `wants`.
[[nodiscard]] Demand demand_of(std::span<const Want> wants, std::span<const Device> devices);

}  // namespace neap::mig
