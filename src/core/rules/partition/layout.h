// Layouts of one device: which instances it is cut into, what is legal, what is still open.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/rules/partition/profiles.h"

namespace neap::mig {

// Where an instance of which profile begins.
struct Place {
  std::int32_t profile = 0;  // index into the model's table
  std::uint32_t start = 0;   // memory slice

  constexpr auto operator<=>(const Place&) const = default;
};

enum class Use : std::uint8_t { idle, busy };

struct Instance {
  Place place;
  Use use = Use::idle;

  constexpr auto operator<=>(const Instance&) const = default;
};

// A device as it is: its instances in any order.
struct Device {
  const DeviceModel* model = nullptr;
  std::vector<Instance> instances;
};

enum class Legality : std::uint8_t {
  legal,
  no_such_profile,
  wrong_start,      // the profile may not begin there
  overlap,          // a memory slice is taken
  too_many,         // more of one profile than the device takes
  compute_short,    // more compute slices than there are
  media_exhausted,  // the extended media engines are given out
};

[[nodiscard]] Legality legality(const DeviceModel& model, std::span<const Place> places);
[[nodiscard]] std::vector<Place> places_of(const Device& device);
[[nodiscard]] bool is_busy(const Device& device);  // any instance is
[[nodiscard]] bool has(const Device& device, const Place& place);
[[nodiscard]] std::uint32_t slices_of(const DeviceModel& model, std::span<const Place> places);

// How much of a device with these instances larger work could still use: the placements that are
// open, each counted with its memory slices. What an instance costs by fragmentation is how much
// less that is with it: a start that leaves the larger profiles placeable costs least.
[[nodiscard]] std::int64_t open_slices(const DeviceModel& model, std::uint32_t taken);

// Every legal layout made of the profiles whose bit is set in `profiles`, the empty one first; the
// places of each in ascending order of start.
[[nodiscard]] std::vector<std::vector<Place>> legal_layouts(const DeviceModel& model,
                                                            std::uint32_t profiles);
inline constexpr std::uint32_t all_profiles = ~0U;

// Those to which no instance can be added.
[[nodiscard]] std::vector<std::vector<Place>> full_layouts(const DeviceModel& model,
                                                           std::uint32_t profiles);

}  // namespace neap::mig
