// neap's own placement: the expected leftover falls as much as it can, less the price of what may
// run short.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulate/leftover/scarcity.h"
#include "simulate/leftover/table.h"
#include "simulate/openb/policy.h"

namespace neap::simulate {

// Its cells are what a price depends on: the model and, where wholly free devices are opened,
// how many there are.
class LeftoverGrader {
 public:
  // `to_come`: demand expected before supply returns, in milli. Without it, what is missing until
  // as much has arrived as the cluster holds: the horizon of an experiment without departures.
  LeftoverGrader(const LeftoverTable& table, const Workload& workload, const Cluster& cluster,
                 std::optional<std::int64_t> to_come);

  [[nodiscard]] std::optional<Grade> grade(const Node& node, std::uint32_t index,
                                           ShapeRef shape) const;
  [[nodiscard]] std::int64_t price(ShapeRef shape, std::uint32_t cell) const;
  [[nodiscard]] std::uint32_t cells() const { return cells_; }
  void changed(const Node& node, std::uint32_t index);
  [[nodiscard]] DeviceMask devices(const Node& node, std::uint32_t index, ShapeRef shape) const;

  // A pod has arrived that asks for so much.
  void arrived(std::int64_t milli);

 private:
  void refresh_when_due();

  LeftoverTable table_;
  Scarcity scarcity_;
  std::uint32_t cells_;
  std::vector<Node> known_;              // as last counted
  std::vector<std::int64_t> potential_;  // by node
  std::int64_t capacity_;
  std::optional<std::int64_t> to_come_;
  std::int64_t arrived_ = 0;
  std::int64_t refreshed_ = -1;  // the half percent of arrivals of the prices
};

class NeapPolicy : public ScoredPolicy<LeftoverGrader> {
 public:
  NeapPolicy(const LeftoverTable& table, const Workload& workload, const Cluster& cluster,
             PolicyOptions options, std::optional<std::int64_t> to_come = {})
      : ScoredPolicy(LeftoverGrader(table, workload, cluster, to_come), workload, options.ties,
                     options.seed) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override {
    std::optional<Choice> choice = ScoredPolicy::choose(cluster, pod);
    grader().arrived(pod.demand.milli());
    return choice;
  }
};

}  // namespace neap::simulate
