#include "core/rules/partition/plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/model/check.h"

namespace neap::mig {

namespace {

constexpr std::size_t states_max_few = 1'000'000;  // for one to four devices
constexpr std::int64_t work_max = 40'000'000;      // states tried, for more devices

std::string_view text_of(Legality fault) {
  switch (fault) {
    case Legality::legal:
      return "";
    case Legality::no_such_profile:
      return "is of no profile of the model";
    case Legality::wrong_start:
      return "may not start there";
    case Legality::overlap:
      return "overlaps another instance";
    case Legality::too_many:
      return "is more of this profile than the model takes";
    case Legality::compute_short:
      return "takes more compute slices than are left";
    case Legality::media_exhausted:
      return "wants the extended media engines, which another instance has";
  }
  return "";
}

Result<void> check_devices(std::span<const Device> devices) {
  if (devices.size() > devices_max) {
    return fail(ErrorCode::too_large,
                std::to_string(devices.size()) + " devices; at most " + std::to_string(devices_max),
                "devices");
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    NEAP_CHECK(devices[d].model != nullptr);
    const std::vector<Place> places = places_of(devices[d]);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Legality fault = legality(*devices[d].model, std::span(places).first(i + 1));
      if (fault == Legality::legal) continue;
      return fail(ErrorCode::invalid_argument, std::string(text_of(fault)),
                  "devices[" + std::to_string(d) + "].instances[" + std::to_string(i) + "]");
    }
  }
  return {};
}

std::vector<Group> groups_of(std::span<const Device> devices, const Demand& demand) {
  std::map<std::pair<std::size_t, std::vector<Instance>>, std::size_t> known;
  std::vector<Group> groups;
  const LayoutBook book(demand);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    std::vector<Instance> layout = devices[d].instances;
    std::sort(layout.begin(), layout.end());
    const auto [at, added] = known.try_emplace(
        std::pair(demand.model_slot(devices[d].model), std::move(layout)), groups.size());
    if (added) groups.push_back({options_of(devices[d], demand, book), {}});
    groups[at->second].devices.push_back(static_cast<std::uint32_t>(d));
  }
  return groups;
}

// Whether the mixes of what is wanted are so few that the exact search is cheap for many devices.
std::size_t states_affordable(const std::vector<Group>& groups, const Demand& demand) {
  std::int64_t mixes = 1;
  for (const Kind& kind : demand.kinds) {
    if (kind.count >= work_max || mixes > work_max) return 0;
    mixes *= kind.count + 1;
  }
  if (mixes > work_max) return 0;
  std::int64_t work = 0;
  for (const Group& group : groups) {
    work += static_cast<std::int64_t>(group.devices.size() * group.options.size()) * mixes;
    if (work > work_max) return 0;
  }
  return static_cast<std::size_t>(mixes);
}

Choice search(const std::vector<Group>& groups, const Demand& demand, std::size_t devices,
              Method& method) {
  const std::size_t states =
      devices <= exact_devices ? states_max_few : states_affordable(groups, demand);
  method = Method::exact;
  if (states > 0) {
    if (auto choice = search_exact(groups, demand, states)) return std::move(*choice);
  }
  method = Method::bounded;
  return search_bounded(groups, demand);
}

void add_steps(const Device& device, std::uint32_t index, const std::vector<Service>& services,
               std::vector<Step>& steps) {
  std::vector<Place> used;
  for (const Service& service : services) used.push_back(service.place);
  const auto by_start = [](const Place& a, const Place& b) { return a.start < b.start; };
  std::sort(used.begin(), used.end(), by_start);
  if (!is_busy(device)) {
    std::vector<Place> removed = in_the_way(device, used);
    std::sort(removed.begin(), removed.end(), by_start);
    for (const Place& place : removed) steps.push_back({StepKind::destroy, index, place});
  }
  const std::vector<Place> there = places_of(device);
  for (const Place& place : used) {
    if (std::find(there.begin(), there.end(), place) == there.end()) {
      steps.push_back({StepKind::create, index, place});
    }
  }
}

// Gives the instances of each kind to its wants, the heaviest first, by device.
void answer(Plan& plan, const Demand& demand, const std::vector<std::vector<Service>>& by_device) {
  std::vector<std::size_t> turn(demand.kinds.size(), 0);
  plan.answers.resize(demand.wants.size());
  for (std::uint32_t d = 0; d < by_device.size(); ++d) {
    for (const Service& service : by_device[d]) {
      const Kind& kind = demand.kinds[service.kind];
      std::size_t& at = turn[service.kind];
      while (plan.answers[kind.wants[at]].served == demand.wants[kind.wants[at]].count) ++at;
      ++plan.answers[kind.wants[at]].served;
      plan.serves.push_back({d, service.place, static_cast<std::uint32_t>(kind.wants[at])});
    }
  }
  std::stable_sort(plan.serves.begin(), plan.serves.end(), [](const Serve& a, const Serve& b) {
    return std::pair(a.device, a.place.start) < std::pair(b.device, b.place.start);
  });
}

// Why wants got less than they asked for.
void explain(Plan& plan, const Demand& demand, std::span<const Device> devices) {
  for (const Kind& kind : demand.kinds) {
    std::int64_t alone = 0;       // on the devices as they are
    std::int64_t unoccupied = 0;  // were nothing busy
    for (const Device& device : devices) {
      const std::int32_t index = kind.profiles[demand.model_slot(device.model)];
      if (index < 0) continue;
      const std::int64_t most = device.model->table[static_cast<std::size_t>(index)].count_max;
      unoccupied += most;
      alone += !is_busy(device)
                   ? most
                   : std::count_if(device.instances.begin(), device.instances.end(),
                                   [&](const Instance& i) {
                                     return i.use == Use::idle && i.place.profile == index;
                                   });
    }
    std::int64_t asked = 0;
    for (const std::size_t w : kind.wants) {
      Answer& given = plan.answers[w];
      given.at_most = alone;
      asked += demand.wants[w].count;
      if (given.served == demand.wants[w].count) continue;
      given.shortage = unoccupied == 0      ? Shortage::no_profile
                       : asked > unoccupied ? Shortage::too_many
                       : asked > alone      ? Shortage::held_by_busy
                                            : Shortage::outweighed;
    }
  }
}

}  // namespace

std::string_view name_of(Shortage shortage) {
  switch (shortage) {
    case Shortage::none:
      return "none";
    case Shortage::no_profile:
      return "no_profile";
    case Shortage::held_by_busy:
      return "held_by_busy";
    case Shortage::too_many:
      return "too_many";
    case Shortage::outweighed:
      return "outweighed";
  }
  return "";
}

Result<Plan> make_plan(std::span<const Device> devices, std::span<const Want> wants) {
  if (auto good = check_wants(wants); !good) return tl::unexpected(good.error());
  if (auto good = check_devices(devices); !good) return tl::unexpected(good.error());
  const Demand demand = demand_of(wants, devices);
  const std::vector<Group> groups = groups_of(devices, demand);
  Plan plan;
  Choice choice = search(groups, demand, devices.size(), plan.method);
  plan.score = choice.score;
  plan.worth_bound = choice.worth_bound;
  std::vector<std::vector<Service>> by_device(devices.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // Among equal devices the first serve most.
    std::sort(choice.options[g].begin(), choice.options[g].end(), [&](auto a, auto b) {
      const Counts& left = groups[g].options[a].counts;
      const Counts& right = groups[g].options[b].counts;
      return left != right ? right < left : a < b;
    });
    for (std::size_t i = 0; i < groups[g].devices.size(); ++i) {
      by_device[groups[g].devices[i]] = groups[g].options[choice.options[g][i]].services;
    }
  }
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    add_steps(devices[d], d, by_device[d], plan.steps);
  }
  answer(plan, demand, by_device);
  explain(plan, demand, devices);
  return plan;
}

Review review(const Plan& plan, std::span<const Device> devices) {
  const std::vector<Step>& steps = plan.steps;
  Review found{0, steps.size(), steps.size(), StepState::done, plan.serves.size()};
  std::vector<Device> after(devices.begin(), devices.end());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepState state = state_of(steps[i], after);
    if (state == StepState::done) {
      ++found.done;
      continue;
    }
    found.next = std::min(found.next, i);
    if (state == StepState::ready) {
      take(steps[i], after);
    } else if (found.refused == steps.size()) {
      found.refused = i;
      found.why = state;
    }
  }
  for (std::size_t i = 0; i < plan.serves.size() && found.lost == plan.serves.size(); ++i) {
    const Serve& serve = plan.serves[i];
    if (serve.device >= after.size() || !has(after[serve.device], serve.place)) found.lost = i;
  }
  return found;
}

bool holds(const Plan& plan, const Review& review) {
  return review.refused == plan.steps.size() && review.lost == plan.serves.size();
}

}  // namespace neap::mig
