#include "core/rules/partition/wants.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::mig {

namespace {

std::int32_t serving_profile(const DeviceModel& model, const Want& want) {
  return want.profile.empty() ? smallest_profile(model, want.need)
                              : find_profile(model, want.profile);
}

std::string within(std::int64_t max) { return "; expected 1 to " + std::to_string(max); }

}  // namespace

std::int64_t Kind::worth_of(std::int64_t served, std::span<const Want> all) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < wants.size() && served > 0; ++i) {
    const Want& want = all[wants[i]];
    const std::int64_t part = std::min(served, want.count);
    sum += part * want.weight;
    served -= part;
  }
  return sum;
}

std::size_t Demand::model_slot(const DeviceModel* model) const {
  const auto found = std::find(models.begin(), models.end(), model);
  NEAP_CHECK(found != models.end());
  return static_cast<std::size_t>(found - models.begin());
}

Result<void> check_wants(std::span<const Want> wants) {
  if (wants.size() > wants_max) {
    return fail(ErrorCode::too_large,
                std::to_string(wants.size()) + " wants; at most " + std::to_string(wants_max),
                "wants");
  }
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const Want& want = wants[i];
    const std::string place = "wants[" + std::to_string(i) + "].";
    if (want.count < 1 || want.count > count_max) {
      return fail(ErrorCode::invalid_argument,
                  "is " + std::to_string(want.count) + within(count_max), place + "count");
    }
    if (want.weight < 1 || want.weight > weight_max) {
      return fail(ErrorCode::invalid_argument,
                  "is " + std::to_string(want.weight) + within(weight_max), place + "weight");
    }
    const bool needs = want.need.memory.value > 0 || want.need.compute_slices > 0;
    if (want.need.memory.value < 0 || want.need.compute_slices < 0 ||
        needs != want.profile.empty()) {
      return fail(ErrorCode::invalid_argument, "expected a profile, or memory and compute",
                  place + "profile");
    }
  }
  return {};
}

Demand demand_of(std::span<const Want> wants, std::span<const Device> devices) {
  Demand demand;
  demand.wants = wants;
  for (const Device& device : devices) {
    if (std::find(demand.models.begin(), demand.models.end(), device.model) ==
        demand.models.end()) {
      demand.models.push_back(device.model);
    }
  }
  for (std::size_t i = 0; i < wants.size(); ++i) {
    std::vector<std::int32_t> profiles;
    for (const DeviceModel* model : demand.models) {
      profiles.push_back(serving_profile(*model, wants[i]));
    }
    auto kind = std::find_if(demand.kinds.begin(), demand.kinds.end(),
                             [&](const Kind& k) { return k.profiles == profiles; });
    if (kind == demand.kinds.end()) {
      demand.kinds.push_back({std::move(profiles), {}, 0});
      kind = demand.kinds.end() - 1;
    }
    kind->wants.push_back(i);
    kind->count += wants[i].count;
  }
  for (Kind& kind : demand.kinds) {
    std::stable_sort(kind.wants.begin(), kind.wants.end(), [&](std::size_t a, std::size_t b) {
      return wants[a].weight > wants[b].weight;
    });
  }
  return demand;
}

}  // namespace neap::mig
