// neap's own placement: the expected leftover falls as much as it can, less the price of what may
// run short.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulate/leftover/scarcity.h"
#include "simulate/leftover/table.h"
#include "simulate/leftover/valuation.h"
#include "simulate/openb/policy.h"

namespace neap::simulate {

// A cluster that fills up and is done, as in the published experiment, or one where pods come and
// go. What may run short is reckoned until as much has arrived as the cluster holds; or for as much
// as the cluster holds from now on, which is about what arrives before all that runs has ended.
enum class Course : std::uint8_t { filling, lasting };

// Its cells are what a price depends on: the model and, where wholly free devices are opened,
// how many there are.
class LeftoverGrader {
 public:
  LeftoverGrader(const LeftoverTable& table, Course course, const Workload& workload,
                 const Cluster& cluster);

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

  Course course_;
  Valuation valuation_;
  Scarcity scarcity_;
  std::uint32_t cells_;
  std::vector<Node> known_;              // as last counted
  std::vector<std::int64_t> potential_;  // by node
  std::int64_t capacity_;
  std::int64_t arrived_ = 0;
  std::int64_t refreshed_ = -1;  // the half percent of arrivals of the prices
};

class NeapPolicy : public ScoredPolicy<LeftoverGrader> {
 public:
  NeapPolicy(const LeftoverTable& table, Course course, const Workload& workload,
             const Cluster& cluster, PolicyOptions options)
      : ScoredPolicy(LeftoverGrader(table, course, workload, cluster), workload, options.ties,
                     options.seed) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override {
    std::optional<Choice> choice = ScoredPolicy::choose(cluster, pod);
    grader().arrived(pod.demand.milli());
    return choice;
  }
};

}  // namespace neap::simulate
