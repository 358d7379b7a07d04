// What one node has free and what a task asks of it, in the few words that scores need.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/model/units.h"

namespace neap::leftover {

inline constexpr std::int64_t billion = 1'000'000'000;

inline constexpr int most_devices = 16;  // of a node
inline constexpr int most_models = 64;
inline constexpr std::int32_t whole = 1000;

using DeviceMask = std::uint32_t;

// What a task asks for but memory, which no score looks at.
struct Demand {
  std::int32_t cpu = 0;       // milli
  std::int32_t count = 0;     // devices; 0: CPU alone
  std::int32_t each = 0;      // milli of every device
  std::uint64_t models = 0;   // those allowed, as bits; 0: any
  std::uint8_t roles = 0x1f;  // of the devices it may take, as bits

  bool operator==(const Demand&) const = default;
  [[nodiscard]] std::int32_t milli() const { return count * each; }
  [[nodiscard]] bool shares() const { return count == 1 && each < whole; }
};

// One kind of task that the pool is asked for, and how often.
struct TaskKind {
  Demand demand;
  std::int64_t count = 0;
};

// The devices of one model on one node.
struct Supply {
  std::int32_t cpu = 0;                         // free milli of the node
  std::int32_t free = 0;                        // free milli of all devices
  std::array<std::int16_t, most_devices> idle;  // free milli of each
  std::uint16_t unused = 0;                     // devices that are wholly free, as bits
  std::array<std::uint16_t, 5> by_role{};       // devices of each role, as bits
  std::uint8_t devices = 0;
  std::uint8_t model = 0;
  std::uint32_t version = 0;  // grows with each change
  MiB memory;                 // free on the node

  [[nodiscard]] std::int32_t count_unused() const { return std::popcount(unused); }
  // The devices that a demand may take, by their roles.
  [[nodiscard]] DeviceMask allowed(const Demand& demand) const {
    DeviceMask mask = 0;
    for (std::size_t r = 0; r < by_role.size(); ++r) {
      mask |= (demand.roles >> r & 1U) != 0 ? by_role[r] : 0U;
    }
    return mask;
  }
  // All but memory.
  [[nodiscard]] bool fits(const Demand& demand) const;
};

// The lowest-numbered of these devices.
[[nodiscard]] constexpr DeviceMask lowest(DeviceMask devices, std::int32_t count) {
  DeviceMask chosen = 0;
  for (; devices != 0 && count > 0; --count, devices &= devices - 1) {
    chosen |= devices & (~devices + 1);
  }
  return chosen;
}

}  // namespace neap::leftover
