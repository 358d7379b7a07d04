// A plan is a list of steps, and a value: it can be kept, checked against the devices as they are
// by now, and carried on after a crash, because what a step has done can be seen on the device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/rules/partition/layout.h"

namespace neap::mig {

enum class StepKind : std::uint8_t { destroy, create };

struct Step {
  StepKind kind = StepKind::destroy;
  std::uint32_t device = 0;
  Place place;

  constexpr auto operator<=>(const Step&) const = default;
};

enum class StepState : std::uint8_t {
  done,            // the device already is as the step leaves it
  ready,           // may be taken now
  device_busy,     // refused: something on the device is busy by now
  no_room,         // refused: the new instance would not be legal beside what is there
  no_such_device,  // refused
};
[[nodiscard]] std::string_view name_of(StepState state);

[[nodiscard]] StepState state_of(const Step& step, std::span<const Device> devices);

// Takes a step that is ready.
void take(const Step& step, std::span<Device> devices);

}  // namespace neap::mig
