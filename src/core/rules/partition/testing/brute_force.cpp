#include "core/rules/partition/testing/brute_force.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace neap::mig::testing {

namespace {

using Slices = std::array<int, 16>;  // how many instances hold each memory slice

const Profile& profile_of(const DeviceModel& model, const Place& place) {
  return model.table[static_cast<std::size_t>(place.profile)];
}

Slices marked(const DeviceModel& model, std::span<const Place> places) {
  Slices slices{};
  for (const Place& place : places) {
    for (int i = 0; i < profile_of(model, place).memory_slices; ++i) {
      ++slices[place.start + static_cast<std::size_t>(i)];
    }
  }
  return slices;
}

bool starts_there(const Profile& profile, std::uint32_t start) {
  return start < 8 && (profile.starts & (1U << start)) != 0;
}

std::int64_t open_places(const DeviceModel& model, const Slices& slices) {
  std::int64_t open = 0;
  for (const Profile& profile : model.profiles()) {
    for (std::uint32_t start = 0; start < 8; ++start) {
      if (!starts_there(profile, start)) continue;
      bool free = true;
      for (int i = 0; i < profile.memory_slices; ++i) {
        free = free && slices[start + static_cast<std::size_t>(i)] == 0;
      }
      if (free) open += profile.memory_slices;
    }
  }
  return open;
}

bool serves(const DeviceModel& model, const Place& place, const Want& want) {
  if (!want.profile.empty()) return profile_of(model, place).name == want.profile;
  const Profile* smallest = nullptr;
  for (const Profile& p : model.profiles()) {
    if (p.memory < want.need.memory || p.compute_slices < want.need.compute_slices) continue;
    if (p.media == Media::extended) continue;  // there is always a plain one of its size
    if (smallest == nullptr || p.memory_slices < smallest->memory_slices ||
        (p.memory_slices == smallest->memory_slices &&
         p.compute_slices < smallest->compute_slices)) {
      smallest = &p;
    }
  }
  return smallest == &profile_of(model, place);
}

std::vector<std::vector<Place>> all_layouts(const DeviceModel& model) {
  std::vector<Place> places;
  for (std::int32_t p = 0; p < model.profile_count; ++p) {
    for (std::uint32_t start = 0; start < 8; ++start) {
      if (starts_there(model.table[static_cast<std::size_t>(p)], start)) {
        places.push_back({p, start});
      }
    }
  }
  std::vector<std::vector<Place>> layouts = {{}};
  for (const Place& place : places) {
    const std::size_t before = layouts.size();
    for (std::size_t i = 0; i < before; ++i) {
      std::vector<Place> more = layouts[i];
      more.push_back(place);
      if (can_be_together(model, more)) layouts.push_back(more);
    }
  }
  return layouts;
}

const std::vector<std::vector<Place>>& layouts_of(const DeviceModel& model) {
  static std::map<const DeviceModel*, std::vector<std::vector<Place>>> known;
  const auto [at, added] = known.try_emplace(&model);
  if (added) at->second = all_layouts(model);
  return at->second;
}

Cost cost_of(const Device& before, std::span<const Place> after, std::span<const Place> used) {
  const DeviceModel& model = *before.model;
  const std::vector<Place> present = places_of(before);
  std::set<Place> changed;
  for (const Place& place : present) {
    if (std::count(after.begin(), after.end(), place) == 0) changed.insert(place);
  }
  for (const Place& place : after) {
    if (std::count(present.begin(), present.end(), place) == 0) changed.insert(place);
  }
  Cost cost;
  cost.churn = static_cast<std::int64_t>(changed.size());
  cost.touched = changed.empty() ? 0 : 1;
  std::set<Place> busy;
  for (const Instance& instance : before.instances) {
    if (instance.use == Use::busy) busy.insert(instance.place);
  }
  if (used.empty() && busy.empty()) return cost;  // it can be emptied: as good as whole
  cost.not_whole = 1;
  cost.closed = open_places(model, {}) - open_places(model, marked(model, after));
  for (const Place& place : after) {
    if (busy.count(place) == 0 && std::count(used.begin(), used.end(), place) == 0) {
      cost.closed -= profile_of(model, place).memory_slices;
    }
  }
  return cost;
}

using Served = std::vector<std::int64_t>;  // by want

// Everything that one device can be made to do.
class OneDevice {
 public:
  OneDevice(const Device& device, std::span<const Want> wants) : device_(device), wants_(wants) {}

  std::map<Served, Cost> run() {
    if (is_busy(device_)) {
      after_ = places_of(device_);
      subsets(0);
    } else {
      for (const std::vector<Place>& layout : layouts_of(*device_.model)) {
        after_ = layout;
        subsets(0);
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool usable(const Place& place) const {
    return std::none_of(device_.instances.begin(), device_.instances.end(),
                        [&](const auto& i) { return i.place == place && i.use == Use::busy; });
  }

  void subsets(std::size_t index) {
    if (index == after_.size()) {
      const Cost cost = cost_of(device_, after_, used_);
      const auto [at, added] = found_.try_emplace(served_, cost);
      if (!added && cost < at->second) at->second = cost;
      return;
    }
    subsets(index + 1);
    if (!usable(after_[index])) return;
    for (std::size_t w = 0; w < wants_.size(); ++w) {
      if (served_[w] == wants_[w].count || !serves(*device_.model, after_[index], wants_[w])) {
        continue;
      }
      ++served_[w];
      used_.push_back(after_[index]);
      subsets(index + 1);
      used_.pop_back();
      --served_[w];
    }
  }

  const Device& device_;
  std::span<const Want> wants_;
  std::vector<Place> after_;
  std::vector<Place> used_;
  Served served_ = Served(wants_.size(), 0);
  std::map<Served, Cost> found_;
};

void combine(const std::vector<std::map<Served, Cost>>& ways, std::span<const Want> wants,
             Served& served, Score so_far, std::optional<Score>& best) {
  const std::size_t device = static_cast<std::size_t>(so_far.worth);
  if (device == ways.size()) {
    Score score{0, so_far.cost};
    for (std::size_t w = 0; w < wants.size(); ++w) score.worth += served[w] * wants[w].weight;
    if (!best || score > *best) best = score;
    return;
  }
  for (const auto& [counts, cost] : ways[device]) {
    bool fits = true;
    for (std::size_t w = 0; w < wants.size(); ++w) {
      fits = fits && served[w] + counts[w] <= wants[w].count;
    }
    if (!fits) continue;
    Score next = so_far;
    ++next.worth;  // counts the devices until all are decided
    next.cost += cost;
    for (std::size_t w = 0; w < wants.size(); ++w) served[w] += counts[w];
    combine(ways, wants, served, next, best);
    for (std::size_t w = 0; w < wants.size(); ++w) served[w] -= counts[w];
  }
}

std::vector<Place> after_steps(const Plan& plan, std::uint32_t device, std::vector<Place> places) {
  for (const Step& step : plan.steps) {
    if (step.device != device) continue;
    if (step.kind == StepKind::create) {
      places.push_back(step.place);
    } else {
      std::erase(places, step.place);
    }
  }
  return places;
}

void check_steps(const Plan& plan, std::span<const Device> devices,
                 std::vector<std::string>& faults) {
  std::vector<std::vector<Place>> now;
  for (const Device& device : devices) now.push_back(places_of(device));
  for (const Step& step : plan.steps) {
    if (step.device >= devices.size()) {
      faults.emplace_back("a step on no device");
      return;
    }
    std::vector<Place>& places = now[step.device];
    if (is_busy(devices[step.device])) faults.emplace_back("a step on a busy device");
    const bool there = std::count(places.begin(), places.end(), step.place) != 0;
    if (step.kind == StepKind::create) {
      places.push_back(step.place);
    } else if (there) {
      std::erase(places, step.place);
    } else {
      faults.emplace_back("what is not there is destroyed");
    }
    if (!can_be_together(*devices[step.device].model, places)) {
      faults.emplace_back("a state on the way is not legal");
    }
  }
}

void check_serves(const Plan& plan, std::span<const Device> devices, std::span<const Want> wants,
                  std::vector<std::string>& faults) {
  std::set<std::pair<std::uint32_t, Place>> taken;
  Served served(wants.size(), 0);
  for (const Serve& serve : plan.serves) {
    const Device& device = devices[serve.device];
    if (!taken.emplace(serve.device, serve.place).second) faults.emplace_back("serves twice");
    const auto places = after_steps(plan, serve.device, places_of(device));
    if (std::count(places.begin(), places.end(), serve.place) == 0) {
      faults.emplace_back("what is not there serves");
    }
    for (const Instance& instance : device.instances) {
      if (instance.place == serve.place && instance.use == Use::busy) {
        faults.emplace_back("a busy instance serves");
      }
    }
    if (!serves(*device.model, serve.place, wants[serve.want])) {
      faults.emplace_back("another profile serves");
    }
    ++served[serve.want];
  }
  for (std::size_t w = 0; w < wants.size(); ++w) {
    if (served[w] > wants[w].count) faults.emplace_back("more is served than asked for");
    if (served[w] != plan.answers[w].served) faults.emplace_back("the answer is another number");
    if ((served[w] < wants[w].count) != (plan.answers[w].shortage != Shortage::none)) {
      faults.emplace_back("a shortage without a reason, or the reverse");
    }
  }
}

}  // namespace

bool can_be_together(const DeviceModel& model, std::span<const Place> places) {
  int compute = 0;
  int media = 0;
  std::map<std::int32_t, int> counts;
  for (const Place& place : places) {
    if (place.profile < 0 || place.profile >= model.profile_count) return false;
    const Profile& profile = profile_of(model, place);
    if (!starts_there(profile, place.start)) return false;
    compute += profile.compute_slices;
    media += profile.media == Media::extended ? 1 : 0;
    if (++counts[place.profile] > profile.count_max) return false;
  }
  const Slices slices = marked(model, places);
  return compute <= model.compute_slices && media <= model.media_extensions &&
         std::all_of(slices.begin(), slices.end(), [](int n) { return n <= 1; });
}

std::optional<Score> best_by_force(std::span<const Device> devices, std::span<const Want> wants,
                                   std::int64_t tries_max) {
  std::vector<std::map<Served, Cost>> ways;
  std::int64_t tries = 1;
  for (const Device& device : devices) {
    ways.push_back(OneDevice(device, wants).run());
    tries *= static_cast<std::int64_t>(ways.back().size());
    if (tries > tries_max) return std::nullopt;
  }
  std::optional<Score> best;
  Served served(wants.size(), 0);
  combine(ways, wants, served, {}, best);
  return best;
}

Score score_of(const Plan& plan, std::span<const Device> devices, std::span<const Want> wants) {
  Score score;
  for (const Serve& serve : plan.serves) score.worth += wants[serve.want].weight;
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    std::vector<Place> used;
    for (const Serve& serve : plan.serves) {
      if (serve.device == d) used.push_back(serve.place);
    }
    score.cost += cost_of(devices[d], after_steps(plan, d, places_of(devices[d])), used);
  }
  return score;
}

std::vector<std::string> faults_of(const Plan& plan, std::span<const Device> devices,
                                   std::span<const Want> wants) {
  std::vector<std::string> faults;
  check_steps(plan, devices, faults);
  if (faults.empty()) check_serves(plan, devices, wants, faults);
  return faults;
}

}  // namespace neap::mig::testing
