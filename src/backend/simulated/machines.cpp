#include "backend/simulated/machines.h"

#include <algorithm>
#include <utility>

#include "core/model/check.h"

namespace neap::simulated {

void Machines::add(const NodeSpec& spec) {
  Node& added = nodes_[spec.name];
  NEAP_CHECK(added.devices.empty());
  added.spec = spec;
  by_name_[spec.name] = &added;
  for (const DeviceSpec& device : spec.devices) {
    by_uuid_[device.uuid] = {&added, added.devices.size()};
    added.devices.push_back(
        {.spec = device, .index = static_cast<std::int32_t>(added.devices.size())});
  }
}

Machines::Node& Machines::node(const std::string& name) {
  const auto found = by_name_.find(name);
  NEAP_CHECK(found != by_name_.end());
  return *found->second;
}

const Machines::Node* Machines::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Machines::Node* Machines::node_with(const std::string& uuid) const {
  const auto found = by_uuid_.find(uuid);
  return found == by_uuid_.end() ? nullptr : found->second.node;
}

void Machines::note(const StartTask& order, const std::string& what) {
  broken_promises_.push_back("allocation " + std::to_string(order.allocation.value) + " of " +
                             order.name + ": " + what);
}

Machines::Occupied Machines::occupy(const StartTask& order) {
  if (order.devices.size() != order.slots.size()) note(order, "devices and slots do not match");
  std::vector<Place> places;
  places.reserve(order.devices.size());
  for (const std::string& uuid : order.devices) {
    const auto found = by_uuid_.find(uuid);
    if (found == by_uuid_.end()) {
      note(order, "no device " + uuid);
      return Occupied::device_failed;
    }
    places.push_back(found->second);
    if (device(found->second).failed) return Occupied::device_failed;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    Device& target = device(places[i]);
    const Slot& slot = order.slots[i];
    MilliGpu share = slot.share;
    MiB memory = slot.memory;
    for (const Process& process : target.processes) {
      share += process.share;
      memory += process.memory;
    }
    if (share > whole_device) note(order, "compute of " + order.devices[i] + " is still held");
    if (memory > target.spec.memory)
      note(order, "memory of " + order.devices[i] + " is still held");
    if (memory + target.foreign > target.spec.memory) return Occupied::out_of_memory;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    device(places[i]).processes.push_back(
        {order.allocation, order.slots[i].share, order.slots[i].memory});
  }
  running_[order.allocation] = std::move(places);
  return Occupied::yes;
}

void Machines::vacate(AllocationId allocation) {
  const auto found = running_.find(allocation);
  if (found == running_.end()) return;
  for (const Place& place : found->second) {
    std::erase_if(device(place).processes,
                  [&](const Process& p) { return p.allocation == allocation; });
  }
  running_.erase(found);
}

void Machines::go_down(const std::string& name) {
  Node& lost = node(name);
  lost.up = false;
  for (Device& target : lost.devices) target.processes.clear();
  for (auto it = running_.begin(); it != running_.end();) {
    std::erase_if(it->second, [&](const Place& place) { return place.node == &lost; });
    it = it->second.empty() ? running_.erase(it) : std::next(it);
  }
}

std::vector<AllocationId> Machines::on_node(const std::string& name) const {
  std::vector<AllocationId> found;
  for (const auto& [allocation, places] : running_) {
    if (std::any_of(places.begin(), places.end(),
                    [&](const Place& place) { return place.node->spec.name == name; })) {
      found.push_back(allocation);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> Machines::nodes_with(const std::vector<std::string>& uuids) const {
  std::vector<std::string> names;
  for (const std::string& uuid : uuids) {
    const auto found = by_uuid_.find(uuid);
    if (found != by_uuid_.end()) names.push_back(found->second.node->spec.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool Machines::is_running(AllocationId allocation) const { return running_.contains(allocation); }

}  // namespace neap::simulated
