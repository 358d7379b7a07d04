// Fragmentation of a node by the task classes (Weng et al., USENIX ATC'23): the free milli that a
// task drawn from the classes could not use there, on average.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/openb/workload.h"

namespace neap::simulate {

class Fragmentation {
 public:
  // By the typical classes.
  explicit Fragmentation(const Workload& workload);
  struct Weighted {
    Demand demand;
    double weight = 0;
  };
  explicit Fragmentation(const std::vector<Weighted>& classes);

  [[nodiscard]] double of(const Node& node) const;

 private:
  struct Class {
    Demand demand;
    std::uint32_t cut = 0;  // index of its share among the cuts
    double weight = 0;
  };
  struct Cut {
    std::int32_t each = 0;
    std::int32_t enough = 0;  // devices with at least so much
    std::int32_t below = 0;   // milli free on the others
  };

  void add(const Weighted& weighted);

  std::vector<Class> classes_;
  mutable std::vector<Cut> cuts_;  // scratch of `of`, but for the shares themselves
};

}  // namespace neap::simulate
