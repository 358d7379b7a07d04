// What is really there: nodes, devices, and which processes hold what of them. Kept apart from
// everything the engine believes, so that the two can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model/events.h"

namespace neap::simulated {

class Machines {
 public:
  struct Process {
    AllocationId allocation;
    MilliGpu share{0};
    MiB memory{0};
  };
  struct Device {
    DeviceSpec spec;
    std::int32_t index = 0;
    bool failed = false;
    MiB foreign{0};  // held by processes outside the pool
    std::vector<Process> processes;
  };
  struct Node {
    NodeSpec spec;
    bool up = true;
    bool reachable = true;
    std::vector<Device> devices;
  };

  void add(const NodeSpec& spec);
  [[nodiscard]] Node& node(const std::string& name);  // checked
  [[nodiscard]] const Node* find(const std::string& name) const;
  [[nodiscard]] const Node* node_with(const std::string& uuid) const;
  [[nodiscard]] const std::map<std::string, Node>& nodes() const { return nodes_; }

  enum class Occupied : std::uint8_t { yes, device_failed, out_of_memory };
  // Starts the processes of an allocation, one on each device. out_of_memory: a process outside
  // the pool has taken what the pool believed free. Its own tasks in each other's way, or a
  // device that does not exist, are broken promises.
  Occupied occupy(const StartTask& order);
  // All processes of the allocation are gone.
  void vacate(AllocationId allocation);
  // The node has gone down, and all processes on it with it. Parts of gangs elsewhere live on.
  void go_down(const std::string& name);
  [[nodiscard]] std::vector<AllocationId> on_node(const std::string& name) const;  // sorted
  [[nodiscard]] std::vector<std::string> nodes_with(const std::vector<std::string>& uuids) const;
  [[nodiscard]] bool is_running(AllocationId allocation) const;

  // Where the engine gave away what somebody still held; must stay empty.
  [[nodiscard]] const std::vector<std::string>& broken_promises() const { return broken_promises_; }

 private:
  struct Place {
    Node* node = nullptr;
    std::size_t index = 0;
  };
  [[nodiscard]] static Device& device(const Place& place) {
    return place.node->devices[place.index];
  }
  void note(const StartTask& order, const std::string& what);

  std::map<std::string, Node> nodes_;  // they stay where they are
  std::unordered_map<std::string, Node*> by_name_;
  std::unordered_map<std::string, Place> by_uuid_;
  std::unordered_map<AllocationId, std::vector<Place>> running_;
  std::vector<std::string> broken_promises_;
};

}  // namespace neap::simulated
