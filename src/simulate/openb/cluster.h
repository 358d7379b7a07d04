// Nodes, pods and what is free, as the published placement experiment sees them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/units.h"
#include "core/rules/place/supply.h"

namespace neap::simulate {

using leftover::Demand;
using leftover::DeviceMask;
using leftover::most_devices;
using leftover::most_models;
using leftover::whole;

struct Pod {
  Demand demand;
  MiB memory;
  std::uint32_t shape = 0;  // dense: pods of one demand have one shape
};

struct Node : leftover::Supply {
  std::uint32_t kinds = 0;  // of pods that were placed: bit 0 share, bit k whole devices
};

struct Choice {
  std::uint32_t node = 0;
  DeviceMask devices = 0;
};

class Cluster {
 public:
  explicit Cluster(std::vector<Node> nodes);

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const Node& node(std::uint32_t index) const { return nodes_[index]; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }  // milli of devices
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }

  // The devices must be free enough: anything else is a bug.
  void place(const Pod& pod, Choice where);
  void remove(const Pod& pod, Choice from);

 private:
  std::vector<Node> nodes_;
  std::int64_t capacity_ = 0;
  std::int64_t allocated_ = 0;
};

// The lowest-numbered devices that are wholly free.
[[nodiscard]] DeviceMask first_unused(const Node& node, std::int32_t count);
// The device with the least that is enough, the lowest-numbered of equals.
[[nodiscard]] DeviceMask tightest(const Node& node, std::int32_t each);
// A pod that shares gets the tightest device, others the first that are wholly free.
[[nodiscard]] DeviceMask usual_devices(const Node& node, const Demand& demand);

}  // namespace neap::simulate
