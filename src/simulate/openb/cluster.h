// Nodes, pods and what is free, as the published placement experiment sees them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/model/units.h"

namespace neap::simulate {

inline constexpr int most_devices = 16;  // of a node
inline constexpr int most_models = 64;
inline constexpr std::int32_t whole = 1000;

// What a pod asks for but memory, which no policy looks at.
struct Demand {
  std::int32_t cpu = 0;      // milli
  std::int32_t count = 0;    // devices; 0: CPU alone
  std::int32_t each = 0;     // milli of every device
  std::uint64_t models = 0;  // those allowed, as bits; 0: any

  bool operator==(const Demand&) const = default;
  [[nodiscard]] std::int32_t milli() const { return count * each; }
  [[nodiscard]] bool shares() const { return count == 1 && each < whole; }
};

struct Pod {
  Demand demand;
  MiB memory;
  std::uint32_t shape = 0;  // dense: pods of one demand have one shape
};

struct Node {
  std::int32_t cpu = 0;                         // free milli
  std::int32_t free = 0;                        // free milli of all devices
  std::array<std::int16_t, most_devices> idle;  // free milli of each
  std::uint8_t devices = 0;
  std::uint8_t model = 0;
  std::uint8_t unused = 0;    // devices that are wholly free
  std::uint32_t kinds = 0;    // of pods that were placed: bit 0 share, bit k whole devices
  std::uint32_t version = 0;  // grows with each change
  MiB memory;                 // free

  // All but memory.
  [[nodiscard]] bool fits(const Demand& demand) const;
};

using DeviceMask = std::uint32_t;

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
