// Units and ids as types of their own, so that a length of time cannot be passed for an amount
// of memory. All are integers: the core has no floating point.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace neap {

template <class Tag>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value + o.value); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value - o.value); }
  constexpr Quantity operator*(std::int64_t k) const { return Quantity(value * k); }
  constexpr Quantity operator/(std::int64_t k) const { return Quantity(value / k); }
  constexpr Quantity operator-() const { return Quantity(-value); }
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  static constexpr Quantity max() { return Quantity(std::numeric_limits<std::int64_t>::max()); }
};

using Micros = Quantity<struct MicrosTag>;      // a length of time in µs
using MilliGpu = Quantity<struct MilliGpuTag>;  // 1000 = one whole device
using MiB = Quantity<struct MiBTag>;            // device or host memory
using Ppm = Quantity<struct PpmTag>;            // millionths; 1'000'000 = all

// A moment: µs since the Unix epoch in the daemon, since the start of the run in the simulator.
struct Time {
  std::int64_t us = 0;

  constexpr Time() = default;
  constexpr explicit Time(std::int64_t v) : us(v) {}
  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Micros d) const { return Time(us + d.value); }
  constexpr Time operator-(Micros d) const { return Time(us - d.value); }
  constexpr Micros operator-(Time o) const { return Micros(us - o.us); }
  static constexpr Time never() { return Time(std::numeric_limits<std::int64_t>::max()); }
};

// Products of two amounts pass 64 bits.
__extension__ using Wide = __int128;

inline constexpr MilliGpu whole_device{1000};
inline constexpr Ppm all_ppm{1'000'000};

constexpr Micros microseconds(std::int64_t n) { return Micros(n); }
constexpr Micros milliseconds(std::int64_t n) { return Micros(n * 1'000); }
constexpr Micros seconds(std::int64_t n) { return Micros(n * 1'000'000); }
constexpr Micros minutes(std::int64_t n) { return seconds(n * 60); }
constexpr Micros hours(std::int64_t n) { return minutes(n * 60); }

// A dense id: an index into a table that only grows. `none` names nothing.
template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value = std::numeric_limits<Rep>::max();

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
  [[nodiscard]] constexpr bool valid() const { return value != std::numeric_limits<Rep>::max(); }
  static constexpr Id none() { return Id(); }
};

using NodeId = Id<struct NodeIdTag>;
using DeviceId = Id<struct DeviceIdTag>;
using DomainId = Id<struct DomainIdTag, std::uint16_t>;  // fault domain
using RackId = Id<struct RackIdTag>;
using ModelId = Id<struct ModelIdTag, std::uint16_t>;  // device model, such as A100-80G
using TaskId = Id<struct TaskIdTag>;                   // grows with submission, never used again
using ServiceId = Id<struct ServiceIdTag>;
using PipelineId = Id<struct PipelineIdTag>;  // grows with submission, never used again
using TeamId = Id<struct TeamIdTag, std::uint16_t>;
using TierId = Id<struct TierIdTag, std::uint8_t>;  // 0 = the heaviest tier
using ShapeId = Id<struct ShapeIdTag>;              // interned request, see requests.h
// One placement of one task: what backends and the ledger speak of. Never used again.
using AllocationId = Id<struct AllocationIdTag, std::uint64_t>;

}  // namespace neap

template <class Tag, class Rep>
struct std::hash<neap::Id<Tag, Rep>> {
  std::size_t operator()(neap::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
