// Devices, layouts and wants from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/rules/partition/plan.h"

namespace neap::mig::testing {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  // 0 to n-1; the modulus of a generator that is the same everywhere.
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  // With instances in a part of the devices, some of them busy.
  Device device(const DeviceModel& model) {
    Device device{&model, {}};
    if (chance(30)) return device;
    const std::uint64_t tries = 1 + below(8);
    const bool may_be_busy = chance(40);
    for (std::uint64_t i = 0; i < tries; ++i) {
      const Place place{
          static_cast<std::int32_t>(below(static_cast<std::uint64_t>(model.profile_count))),
          static_cast<std::uint32_t>(below(8))};
      std::vector<Place> places = places_of(device);
      places.push_back(place);
      if (legality(model, places) != Legality::legal) continue;
      device.instances.push_back({place, may_be_busy && chance(40) ? Use::busy : Use::idle});
    }
    return device;
  }

  std::vector<Device> devices(std::size_t count) {
    const bool mixed = chance(25);
    const DeviceModel* model = any_model();
    std::vector<Device> devices;
    for (std::size_t i = 0; i < count; ++i) {
      if (mixed) model = any_model();
      devices.push_back(i > 0 && !mixed && chance(40) ? devices.back() : device(*model));
    }
    return devices;
  }

  std::vector<Want> wants(std::span<const Device> devices, std::size_t lines, std::int64_t most) {
    std::vector<Want> wants;
    for (std::size_t i = 0; i < lines; ++i) {
      const DeviceModel& model = *devices[below(devices.size())].model;
      const Profile& profile = model.table[below(static_cast<std::uint64_t>(model.profile_count))];
      Want want;
      if (chance(70)) {
        want.profile = std::string(profile.name);
      } else {
        want.need.memory = profile.memory / static_cast<std::int64_t>(1 + below(3));
        want.need.compute_slices = static_cast<std::int32_t>(1 + below(3));
      }
      want.count = 1 + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most)));
      want.weight = chance(50) ? 1 : 1 + static_cast<std::int64_t>(below(6));
      wants.push_back(want);
    }
    return wants;
  }

 private:
  const DeviceModel* any_model() { return &models()[below(models().size())]; }

  std::mt19937_64 engine_;
};

}  // namespace neap::mig::testing
