// What a partitionable device can be cut into: the profiles of MIG with the places where each may
// start. A device has memory slices in a row; an instance takes a run of them from its start, and
// a number of compute slices. Two instances never share a memory slice.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/model/units.h"

namespace neap::mig {

enum class Media : std::uint8_t {
  plain,     // what comes with the slices
  extended,  // "+me": the media engines of which the device has one set
};

struct Profile {
  std::string_view name;  // as the driver spells it, such as "3g.40gb"
  std::int32_t compute_slices = 0;
  std::int32_t memory_slices = 0;
  MiB memory{0};             // what a program finds there
  std::uint32_t starts = 0;  // bit i: an instance may start at memory slice i
  std::int32_t count_max = 0;
  Media media = Media::plain;
};

inline constexpr std::int32_t slices_max = 8;
inline constexpr std::int32_t profiles_max = 8;

struct DeviceModel {
  std::string_view name;  // as in pool files, such as "A100-80G"
  std::int32_t compute_slices = 0;
  std::int32_t memory_slices = 0;
  std::int32_t media_extensions = 0;  // instances with Media::extended at one time
  std::array<Profile, profiles_max> table{};
  std::int32_t profile_count = 0;

  [[nodiscard]] std::span<const Profile> profiles() const {
    return {table.data(), static_cast<std::size_t>(profile_count)};
  }
};

// All models known, in the order of their names.
[[nodiscard]] std::span<const DeviceModel> models();
// By name, with capitals or without; nullptr when it is not known.
[[nodiscard]] const DeviceModel* find_model(std::string_view name);
// The index of a profile by its name; -1 when the model has none of that name.
[[nodiscard]] std::int32_t find_profile(const DeviceModel& model, std::string_view name);

struct Need {
  MiB memory{0};
  std::int32_t compute_slices = 0;
};
// The index of the smallest profile with at least that much: fewest memory slices, then fewest
// compute slices, then without extended media; -1 when even the largest is too small.
[[nodiscard]] std::int32_t smallest_profile(const DeviceModel& model, const Need& need);

// The memory slices of an instance as bits.
[[nodiscard]] constexpr std::uint32_t slices_of(const Profile& profile, std::uint32_t start) {
  return ((1U << static_cast<unsigned>(profile.memory_slices)) - 1U) << start;
}
[[nodiscard]] constexpr bool may_start(const Profile& profile, std::uint32_t start) {
  return start < slices_max && ((profile.starts >> start) & 1U) != 0;
}

}  // namespace neap::mig
