#include "core/rules/partition/layout.h"

#include <algorithm>
#include <array>

namespace neap::mig {

namespace {

const Profile& profile_at(const DeviceModel& model, std::int32_t index) {
  return model.table[static_cast<std::size_t>(index)];
}

// Calls visit(places) for every legal layout, by the lowest slice not yet decided.
class Walk {
 public:
  Walk(const DeviceModel& model, std::uint32_t profiles) : model_(model), profiles_(profiles) {}

  std::vector<std::vector<Place>> run() {
    from(0);
    return std::move(found_);
  }

 private:
  void from(std::uint32_t start) {
    if (start >= static_cast<std::uint32_t>(model_.memory_slices)) {
      found_.push_back(places_);
      return;
    }
    from(start + 1);
    for (std::int32_t i = 0; i < model_.profile_count; ++i) {
      const Profile& profile = profile_at(model_, i);
      if (((profiles_ >> static_cast<unsigned>(i)) & 1U) == 0 || !may_start(profile, start)) {
        continue;
      }
      places_.push_back({i, start});
      if (legality(model_, places_) == Legality::legal) {
        from(start + static_cast<std::uint32_t>(profile.memory_slices));
      }
      places_.pop_back();
    }
  }

  const DeviceModel& model_;
  std::uint32_t profiles_;
  std::vector<Place> places_;
  std::vector<std::vector<Place>> found_;
};

bool can_grow(const DeviceModel& model, std::vector<Place> places, std::uint32_t profiles) {
  for (std::int32_t i = 0; i < model.profile_count; ++i) {
    if (((profiles >> static_cast<unsigned>(i)) & 1U) == 0) continue;
    for (std::uint32_t start = 0; start < slices_max; ++start) {
      places.push_back({i, start});
      if (legality(model, places) == Legality::legal) return true;
      places.pop_back();
    }
  }
  return false;
}

}  // namespace

Legality legality(const DeviceModel& model, std::span<const Place> places) {
  std::uint32_t taken = 0;
  std::int32_t compute = 0;
  std::int32_t media = 0;
  std::array<std::int32_t, profiles_max> counts{};
  for (const Place& place : places) {
    if (place.profile < 0 || place.profile >= model.profile_count) return Legality::no_such_profile;
    const Profile& profile = profile_at(model, place.profile);
    if (!may_start(profile, place.start)) return Legality::wrong_start;
    const std::uint32_t slices = slices_of(profile, place.start);
    if ((slices >> static_cast<unsigned>(model.memory_slices)) != 0) return Legality::wrong_start;
    if ((taken & slices) != 0) return Legality::overlap;
    taken |= slices;
    if (++counts[static_cast<std::size_t>(place.profile)] > profile.count_max) {
      return Legality::too_many;
    }
    compute += profile.compute_slices;
    if (compute > model.compute_slices) return Legality::compute_short;
    if (profile.media == Media::extended && ++media > model.media_extensions) {
      return Legality::media_exhausted;
    }
  }
  return Legality::legal;
}

std::vector<Place> places_of(const Device& device) {
  std::vector<Place> places;
  for (const Instance& instance : device.instances) places.push_back(instance.place);
  return places;
}

bool is_busy(const Device& device) {
  return std::any_of(device.instances.begin(), device.instances.end(),
                     [](const Instance& instance) { return instance.use == Use::busy; });
}

bool has(const Device& device, const Place& place) {
  return std::any_of(device.instances.begin(), device.instances.end(),
                     [&](const Instance& instance) { return instance.place == place; });
}

std::uint32_t slices_of(const DeviceModel& model, std::span<const Place> places) {
  std::uint32_t taken = 0;
  for (const Place& place : places) {
    taken |= slices_of(profile_at(model, place.profile), place.start);
  }
  return taken;
}

std::int64_t open_slices(const DeviceModel& model, std::uint32_t taken) {
  std::int64_t open = 0;
  for (const Profile& profile : model.profiles()) {
    for (std::uint32_t start = 0; start < slices_max; ++start) {
      if (may_start(profile, start) && (slices_of(profile, start) & taken) == 0) {
        open += profile.memory_slices;
      }
    }
  }
  return open;
}

std::vector<std::vector<Place>> legal_layouts(const DeviceModel& model, std::uint32_t profiles) {
  return Walk(model, profiles).run();
}

std::vector<std::vector<Place>> full_layouts(const DeviceModel& model, std::uint32_t profiles) {
  std::vector<std::vector<Place>> full = legal_layouts(model, profiles);
  std::erase_if(full, [&](const auto& places) { return can_grow(model, places, profiles); });
  return full;
}

}  // namespace neap::mig
