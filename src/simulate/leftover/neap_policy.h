// neap's own placement: the expected leftover falls as much as it can, less the price of what may
// run short.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/rules/place/scores.h"
#include "simulate/openb/policy.h"

namespace neap::simulate {

using leftover::LeftoverTable;

using leftover::Course;

struct Situation {
  Course course = Course::filling;
  leftover::Outlook outlook;
  std::int64_t arrived = 0;  // milli that have been asked for before
};

// The core's scores over the experiment's cluster.
class LeftoverGrader {
 public:
  using Nodes = std::vector<Node>;

  LeftoverGrader(const LeftoverTable& table, Situation situation, const Workload& workload,
                 const Cluster& cluster);

  [[nodiscard]] std::optional<Grade> grade(const Node& node, std::uint32_t index,
                                           ShapeRef shape) const;
  [[nodiscard]] std::int64_t price(ShapeRef shape, std::uint32_t cell) const {
    return scores_.price(shape.demand, cell);
  }
  [[nodiscard]] std::uint32_t cells() const { return scores_.cells(); }
  void changed(const Node& node, std::uint32_t index);
  [[nodiscard]] DeviceMask devices(const Node& node, std::uint32_t index, ShapeRef shape) const {
    return scores_.devices(node, potential_[index], shape.demand);
  }

  // A pod has arrived that asks for so much.
  void arrived(std::int64_t milli);
  void hold(const Demand& demand, int sign) { scores_.hold(demand, sign); }
  void wait(const Demand& demand, int sign) { scores_.wait(demand, sign); }

 private:
  void refresh_when_due();

  Course course_;
  leftover::Scores scores_;
  std::vector<Node> known_;              // as last counted
  std::vector<std::int64_t> potential_;  // by node
  std::int64_t capacity_;
  std::int64_t arrived_;
  std::int64_t refreshed_ = -1;  // the half percent of arrivals of the prices
};

class NeapPolicy : public ScoredPolicy<LeftoverGrader> {
 public:
  NeapPolicy(const LeftoverTable& table, Situation situation, const Workload& workload,
             const Cluster& cluster, PolicyOptions options)
      : ScoredPolicy(LeftoverGrader(table, situation, workload, cluster), workload, options.ties,
                     options.seed) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override {
    std::optional<Choice> choice = ScoredPolicy::choose(cluster, pod);
    grader().arrived(pod.demand.milli());
    if (choice) grader().hold(pod.demand, 1);
    return choice;
  }
  void departed(const Pod& pod) override { grader().hold(pod.demand, -1); }
  void waits(const Pod& pod) override { grader().wait(pod.demand, 1); }
  void waits_no_longer(const Pod& pod) override { grader().wait(pod.demand, -1); }
};

}  // namespace neap::simulate
