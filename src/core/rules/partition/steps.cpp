#include "core/rules/partition/steps.h"

#include "core/model/check.h"

namespace neap::mig {

std::string_view name_of(StepState state) {
  switch (state) {
    case StepState::done:
      return "done";
    case StepState::ready:
      return "ready";
    case StepState::device_busy:
      return "the device is busy";
    case StepState::no_room:
      return "there is no room for the instance";
    case StepState::no_such_device:
      return "there is no such device";
  }
  return "";
}

StepState state_of(const Step& step, std::span<const Device> devices) {
  if (step.device >= devices.size()) return StepState::no_such_device;
  const Device& device = devices[step.device];
  const bool there = has(device, step.place);
  if (there == (step.kind == StepKind::create)) return StepState::done;
  if (is_busy(device)) return StepState::device_busy;
  if (step.kind == StepKind::create) {
    std::vector<Place> places = places_of(device);
    places.push_back(step.place);
    if (legality(*device.model, places) != Legality::legal) return StepState::no_room;
  }
  return StepState::ready;
}

void take(const Step& step, std::span<Device> devices) {
  NEAP_CHECK(state_of(step, devices) == StepState::ready);
  std::vector<Instance>& instances = devices[step.device].instances;
  if (step.kind == StepKind::create) {
    instances.push_back({step.place, Use::idle});
    return;
  }
  std::erase_if(instances, [&](const Instance& i) { return i.place == step.place; });
}

}  // namespace neap::mig
