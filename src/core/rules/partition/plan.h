// MIG planning: from devices as they are and what is wanted, the layout each device should have
// and the steps that lead there. Instances that serve work are never moved, and the layout of a
// device on which one is busy is never changed: only its idle instances are used, as they are.
//
// Of all plans the one that serves the most weight; then the one that changes the fewest devices;
// then the fewest instances; then the one that keeps the most devices whole, and of the others the
// most that larger profiles can still use; then by device, in their order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/rules/partition/search.h"
#include "core/rules/partition/steps.h"

namespace neap::mig {

// An instance that a want gets: it is there, or one of the steps makes it.
struct Serve {
  std::uint32_t device = 0;
  Place place;
  std::uint32_t want = 0;
};

enum class Shortage : std::uint8_t {
  none,
  no_profile,    // no model of the devices has the profile, or one that is large enough
  held_by_busy,  // more would fit were nothing busy
  too_many,      // more than all devices together could hold of it alone
  outweighed,    // it does not fit beside what is served instead
};
[[nodiscard]] std::string_view name_of(Shortage shortage);

struct Answer {
  std::int64_t served = 0;
  Shortage shortage = Shortage::none;  // why less than the count
  std::int64_t at_most = 0;            // of its kind, were nothing else wanted
};

enum class Method : std::uint8_t { exact, bounded };

struct Plan {
  std::vector<Step> steps;
  std::vector<Serve> serves;    // by device and start
  std::vector<Answer> answers;  // by want
  Score score;
  std::int64_t worth_bound = 0;  // no plan serves more weight
  Method method = Method::exact;
};

inline constexpr std::size_t devices_max = 100'000;

// invalid_argument or too_large, with the place as context, when the wants are out of range or a
// device's present layout is not one it can have.
[[nodiscard]] Result<Plan> make_plan(std::span<const Device> devices, std::span<const Want> wants);

// How far a plan is, and whether it still holds.
struct Review {
  std::size_t done = 0;     // steps that the devices show as done
  std::size_t next = 0;     // index of the first that is not; the number of steps when all are
  std::size_t refused = 0;  // index of the first that can no longer be taken; likewise
  StepState why = StepState::done;  // of the refused one
  std::size_t lost = 0;  // index of the first serve whose instance the steps do not lead to
};
// Looks at every step that is not done as if those before it had been taken. A plan with a refused
// step or a lost serve is given up: make_plan from the devices as they are uses what it has made.
[[nodiscard]] Review review(const Plan& plan, std::span<const Device> devices);
[[nodiscard]] bool holds(const Plan& plan, const Review& review);

}  // namespace neap::mig
