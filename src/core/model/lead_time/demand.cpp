#include "core/model/lead_time/demand.h"

#include <algorithm>
#include <string>

#include "core/model/check.h"
#include "core/model/lead_time/whole.h"

namespace neap::lead_time {

namespace {

constexpr std::int64_t outage_below = 20;  // one part in so many

std::optional<std::int64_t> upper_median(const std::vector<std::optional<std::int64_t>>& slots) {
  std::vector<std::int64_t> known;
  known.reserve(slots.size());
  for (const auto& slot : slots) {
    if (slot) known.push_back(*slot);
  }
  if (known.empty()) return {};
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

}  // namespace

std::int64_t devices_for(std::int64_t offered_micro_per_second, const Capacity& capacity) {
  NEAP_CHECK(offered_micro_per_second >= 0 && capacity.micro_per_second > 0);
  NEAP_CHECK(capacity.devices > 0 && capacity.devices <= most_devices);
  const std::int64_t replicas = ceil_div(offered_micro_per_second, capacity.micro_per_second);
  return replicas > most_devices / capacity.devices ? most_devices : replicas * capacity.devices;
}

std::optional<std::int64_t> sum_of(std::span<const std::optional<std::int64_t>> services) {
  std::int64_t sum = 0;
  for (const auto& service : services) {
    if (!service) return {};
    sum = std::min(most_devices, sum + std::clamp<std::int64_t>(*service, 0, most_devices));
  }
  return sum;
}

std::optional<std::int64_t> unless_outage(const GuardSpec& spec, OutageState& state,
                                          std::optional<std::int64_t> offered) {
  if (offered && state.slots >= spec.slots_per_hour()) {
    const auto usual = upper_median(state.day);
    if (usual && *offered < ceil_div(*usual, outage_below)) offered.reset();
  }
  ++state.slots;
  state.day.push_back(offered);
  const auto most = static_cast<std::size_t>(hours_of_day * spec.slots_per_hour());
  if (state.day.size() > most) state.day.erase(state.day.begin());
  return offered;
}

Result<void> check(const Promotion& promotion) {
  if (promotion.to <= promotion.from) {
    return fail(ErrorCode::invalid_argument, "expected a time after `from`", "to");
  }
  if (promotion.devices < 1 || promotion.devices > most_devices) {
    return fail(ErrorCode::invalid_argument,
                "expected 1 to " + std::to_string(most_devices) + ", not " +
                    std::to_string(promotion.devices),
                "devices");
  }
  return {};
}

std::int64_t floor_of(std::span<const Promotion> calendar, const GuardSpec& spec, Time slot_begin) {
  const Time slot_end = slot_begin + seconds(spec.slot_seconds);
  std::int64_t floor = 0;
  for (const Promotion& promotion : calendar) {
    const bool holds =
        slot_begin < promotion.to && promotion.from - seconds(spec.lead_seconds) < slot_end;
    if (holds) floor = std::max(floor, promotion.devices);
  }
  return floor;
}

}  // namespace neap::lead_time
