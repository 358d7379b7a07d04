// Room for demands over several devices: how much of what is free on a node they could not use.
// A demand that needs a whole node waits until a node is free as a whole, so where pods depart,
// what is lost to it weighs more than its share of the demand. Integers alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace neap::leftover {

class Reserve {
 public:
  // One kind of demand, with the pods that had it.
  struct Want {
    std::uint64_t models = 0;  // 0: any
    std::int32_t count = 0;
    std::int32_t cpu = 0;
    std::int64_t pods = 0;
  };
  Reserve() = default;
  // Demands of two devices and more, weighed by `weight`.
  Reserve(std::span<const Want> wants, std::int64_t weight);

  // In 1/10000 milli.
  [[nodiscard]] std::int64_t unusable(std::uint8_t model, std::int32_t cpu, std::int32_t free,
                                      std::int32_t unused) const;

 private:
  struct Large {
    std::uint64_t models = 0;
    std::int32_t count = 0;
    std::int32_t cpu = 0;
    std::int64_t weight = 0;  // in billionths
  };
  std::vector<Large> large_;
  std::int64_t all_ = 0;  // the sum of their weights
};

}  // namespace neap::leftover
