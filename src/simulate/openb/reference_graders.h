// The scores of the published policies: integers, cut off as the published code does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/rules/place/best_nodes.h"
#include "simulate/openb/cluster.h"
#include "simulate/openb/fragmentation.h"

namespace neap::simulate {

using leftover::Grade;
using leftover::ShapeRef;

using Score = std::int64_t (*)(const Node&, const Demand&);

[[nodiscard]] std::int64_t dot_product_score(const Node& node, const Demand& demand);
[[nodiscard]] std::int64_t clustering_score(const Node& node, const Demand& demand);
[[nodiscard]] std::int64_t packing_score(const Node& node, const Demand& demand);
// Before it is stretched over the nodes that fit: that keeps the order.
[[nodiscard]] std::int64_t best_fit_score(const Node& node, const Demand& demand);

// A score of the node and the demand alone.
class PlainGrader {
 public:
  using Nodes = std::vector<Node>;

  explicit PlainGrader(Score score) : score_(score) {}

  [[nodiscard]] std::optional<Grade> grade(const Node& node, std::uint32_t, ShapeRef shape) const {
    if (!node.fits(shape.demand)) return {};
    return Grade{score_(node, shape.demand), 0};
  }
  [[nodiscard]] static std::int64_t price(ShapeRef, std::uint32_t) { return 0; }
  [[nodiscard]] static std::uint32_t cells() { return 1; }
  static void changed(const Node&, std::uint32_t) {}
  [[nodiscard]] static DeviceMask devices(const Node& node, std::uint32_t, ShapeRef shape) {
    return usual_devices(node, shape.demand);
  }

 private:
  Score score_;
};

// Fragmentation gradient descent. Nodes in one state are scored once for a shape.
class FgdGrader {
 public:
  using Nodes = std::vector<Node>;

  FgdGrader(const Workload& workload, const Cluster& cluster);

  [[nodiscard]] std::optional<Grade> grade(const Node& node, std::uint32_t index, ShapeRef shape);
  [[nodiscard]] static std::int64_t price(ShapeRef, std::uint32_t) { return 0; }
  [[nodiscard]] static std::uint32_t cells() { return 1; }
  void changed(const Node& node, std::uint32_t index);
  [[nodiscard]] DeviceMask devices(const Node& node, std::uint32_t index, ShapeRef shape);

  // Score and devices without any memory of earlier ones, as a plain scan would.
  struct Gain {
    std::int32_t score = 0;
    DeviceMask devices = 0;
  };
  [[nodiscard]] static std::optional<Gain> gain(const Fragmentation& fragmentation,
                                                const Node& node, double before,
                                                const Demand& demand);

 private:
  struct State {
    std::int32_t cpu = 0;
    std::uint8_t model = 0;
    std::uint8_t devices = 0;
    std::array<std::int16_t, most_devices> idle{};

    bool operator==(const State&) const = default;
  };
  struct Hash {
    std::size_t operator()(const State& state) const;
  };

  const Gain& remembered(const Node& node, std::uint32_t index, ShapeRef shape);

  Fragmentation fragmentation_;
  std::unordered_map<State, std::uint32_t, Hash> states_;
  std::vector<double> before_;                // by state
  std::vector<std::uint32_t> state_of_node_;  // by node
  std::vector<std::vector<Gain>> gains_;      // by shape, then state
};

}  // namespace neap::simulate
