// Fragmentation gradient descent (Weng et al., USENIX ATC'23): a task goes where that part grows
// least which a task drawn from what the pool is asked for could not use, of what is free. It needs
// nothing learned, so placement goes by it until enough has been seen. Integers alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rules/place/best_nodes.h"
#include "core/rules/place/supply.h"

namespace neap::leftover {

// In place of Scores, whose interface it has. There are no prices, so one cell.
class Fragments {
 public:
  // By the most frequent kinds that make up 95 % of what was asked for; of equals the first.
  explicit Fragments(std::span<const TaskKind> kinds);

  // What is free on a node and of no use, in milli, summed over all tasks asked for.
  [[nodiscard]] std::int64_t potential_of(const Supply& node) const;
  // The published score, from 0 to 99, of a demand that fits there; `before` is the node's
  // potential.
  [[nodiscard]] Grade grade(const Supply& node, std::int64_t before, const Demand& demand) const {
    return {best(node, before, demand).score, 0};
  }
  // The devices of which grade() speaks: of equals the first.
  [[nodiscard]] DeviceMask devices(const Supply& node, std::int64_t before,
                                   const Demand& demand) const {
    return best(node, before, demand).devices;
  }
  [[nodiscard]] static std::int64_t price(const Demand&, std::uint32_t) { return 0; }
  [[nodiscard]] static std::uint32_t cells() { return 1; }

  static void count(const Supply&, int) {}
  static void refresh(std::int64_t) {}

 private:
  struct Kind {
    std::int32_t cpu = 0;
    std::int32_t count = 0;
    std::uint64_t models = 0;
    std::int64_t tasks = 0;
  };
  // Kinds that ask for the same of each device may use the same ones.
  struct Alike {
    std::int32_t each = 0;
    std::uint8_t roles = 0;
    std::vector<Kind> kinds;
  };
  struct Best {
    std::int64_t score = 0;
    DeviceMask devices = 0;
  };

  [[nodiscard]] Best best(const Supply& node, std::int64_t before, const Demand& demand) const;
  [[nodiscard]] std::int64_t score(std::int64_t gained) const;

  std::vector<Alike> alike_;
  std::array<std::int64_t, 99> limits_{};  // of what is gained, for the scores from 1
};

}  // namespace neap::leftover
