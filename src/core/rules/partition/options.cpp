#include "core/rules/partition/options.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::mig {

namespace {

constexpr unsigned bits_a_profile = 4;

bool holds(std::span<const Place> places, const Place& place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

// The number of instances of each profile, as digits.
std::uint64_t mix_of(std::span<const Place> places) {
  std::uint64_t mix = 0;
  for (const Place& place : places) {
    mix += std::uint64_t{1} << (bits_a_profile * static_cast<unsigned>(place.profile));
  }
  return mix;
}

Cost cost_of(const Device& device, std::span<const Place> used) {
  const DeviceModel& model = *device.model;
  const std::int64_t all_open = open_slices(model, 0);
  if (used.empty() && !is_busy(device)) return {};
  const std::vector<Place> removed = in_the_way(device, used);
  std::uint32_t taken = slices_of(model, used);
  std::int64_t reused = 0;
  std::int64_t idle_left = 0;
  for (const Instance& instance : device.instances) {
    if (holds(removed, instance.place)) continue;
    const auto& profile = model.table[static_cast<std::size_t>(instance.place.profile)];
    taken |= slices_of(profile, instance.place.start);
    if (holds(used, instance.place)) {
      ++reused;
    } else if (instance.use == Use::idle) {
      idle_left += profile.memory_slices;
    }
  }
  const auto created = static_cast<std::int64_t>(used.size()) - reused;
  const std::int64_t churn = created + static_cast<std::int64_t>(removed.size());
  return {churn > 0 ? 1 : 0, churn, 1, all_open - open_slices(model, taken) - idle_left};
}

struct Way {
  Cost cost;
  std::vector<Place> used;
};

// The cheapest way to each mix of profiles.
class Ways {
 public:
  explicit Ways(const Device& device) : device_(device) {}

  void offer(std::span<const Place> used) {
    const Cost cost = cost_of(device_, used);
    const auto [at, added] = best_.try_emplace(mix_of(used));
    if (added || cost < at->second.cost) at->second = {cost, {used.begin(), used.end()}};
  }
  [[nodiscard]] const std::map<std::uint64_t, Way>& best() const { return best_; }

 private:
  const Device& device_;
  std::map<std::uint64_t, Way> best_;
};

// Every subset of the idle instances.
void offer_idle(const Device& device, Ways& ways) {
  std::vector<Place> idle;
  for (const Instance& instance : device.instances) {
    if (instance.use == Use::idle) idle.push_back(instance.place);
  }
  NEAP_CHECK(idle.size() <= slices_max);
  for (std::uint32_t subset = 0; subset < (1U << idle.size()); ++subset) {
    std::vector<Place> used;
    for (std::size_t i = 0; i < idle.size(); ++i) {
      if (((subset >> i) & 1U) != 0) used.push_back(idle[i]);
    }
    ways.offer(used);
  }
}

// Gives the instances of one way to kinds, in every manner that differs in its counts.
class Shares {
 public:
  Shares(const Demand& demand, std::size_t slot, std::vector<Option>& into)
      : demand_(demand), slot_(slot), into_(into) {}

  void give(const Way& way) {
    way_ = &way;
    option_ = {};
    option_.cost = way.cost;
    from(0);
  }

 private:
  void from(std::size_t index) {
    if (index == way_->used.size()) {
      into_.push_back(option_);
      return;
    }
    const Place& place = way_->used[index];
    // Of equal instances the later ones take kinds no earlier than the ones before.
    std::size_t first = 0;
    for (const Service& service : option_.services) {
      if (service.place.profile == place.profile) first = std::max(first, service.kind);
    }
    for (std::size_t k = first; k < demand_.kinds.size(); ++k) {
      const Kind& kind = demand_.kinds[k];
      if (kind.profiles[slot_] != place.profile || option_.counts[k] >= kind.count) continue;
      ++option_.counts[k];
      option_.services.push_back({place, k});
      from(index + 1);
      option_.services.pop_back();
      --option_.counts[k];
    }
  }

  const Demand& demand_;
  std::size_t slot_;
  std::vector<Option>& into_;
  const Way* way_ = nullptr;
  Option option_;
};

}  // namespace

LayoutBook::LayoutBook(const Demand& demand) {
  for (std::size_t slot = 0; slot < demand.models.size(); ++slot) {
    std::uint32_t wanted = 0;
    for (const Kind& kind : demand.kinds) {
      if (kind.profiles[slot] >= 0) wanted |= 1U << static_cast<unsigned>(kind.profiles[slot]);
    }
    layouts_.push_back(legal_layouts(*demand.models[slot], wanted));
  }
}

std::vector<Place> in_the_way(const Device& device, std::span<const Place> places) {
  const DeviceModel& model = *device.model;
  std::vector<Place> present = places_of(device);
  std::sort(present.begin(), present.end());  // equal devices lose the same
  std::vector<Place> together(places.begin(), places.end());
  std::vector<Place> removed;
  for (const Place& place : present) {
    if (holds(places, place)) continue;
    together.push_back(place);
    if (legality(model, together) == Legality::legal) continue;
    together.pop_back();
    removed.push_back(place);
  }
  return removed;
}

std::vector<Option> options_of(const Device& device, const Demand& demand, const LayoutBook& book) {
  const std::size_t slot = demand.model_slot(device.model);
  Ways ways(device);
  if (is_busy(device)) {
    offer_idle(device, ways);
  } else {
    for (const std::vector<Place>& used : book.of(slot)) ways.offer(used);
  }
  std::vector<Option> options;
  Shares shares(demand, slot, options);
  for (const auto& [mix, way] : ways.best()) shares.give(way);
  return options;
}

}  // namespace neap::mig
