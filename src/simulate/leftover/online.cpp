#include "simulate/leftover/online.h"

#include <algorithm>

#include "core/rules/place/fragment.h"
#include "simulate/leftover/learn.h"

namespace neap::simulate {

namespace {

using leftover::Fragments;

constexpr std::size_t enough_to_learn = 250;  // pods

// The core's gradient over the experiment's cluster.
class FragmentsGrader {
 public:
  using Nodes = std::vector<Node>;

  FragmentsGrader(const Workload& seen, const Cluster& cluster) : fragments_(seen.kinds()) {
    for (const Node& node : cluster.nodes()) potential_.push_back(fragments_.potential_of(node));
  }

  [[nodiscard]] std::optional<Grade> grade(const Node& node, std::uint32_t index,
                                           ShapeRef shape) const {
    if (!node.fits(shape.demand)) return {};
    return fragments_.grade(node, potential_[index], shape.demand);
  }
  [[nodiscard]] static std::int64_t price(ShapeRef, std::uint32_t) { return 0; }
  [[nodiscard]] static std::uint32_t cells() { return Fragments::cells(); }
  void changed(const Node& node, std::uint32_t index) {
    potential_[index] = fragments_.potential_of(node);
  }
  [[nodiscard]] DeviceMask devices(const Node& node, std::uint32_t index, ShapeRef shape) const {
    return fragments_.devices(node, potential_[index], shape.demand);
  }

 private:
  Fragments fragments_;
  std::vector<std::int64_t> potential_;  // by node
};

LeftoverTable learn(Course course, const Workload& seen) {
  // Another draw for every table.
  const std::uint64_t seed = seen.pods.size();
  if (course == Course::lasting) return learn_lasting(seen, {.seed = seed});
  return learn_leftover(seen,
                        {.iterations = 8, .streams = 4, .judged = 3, .judging = 4, .seed = seed});
}

}  // namespace

OnlinePolicy::OnlinePolicy(Course course, const Workload& workload, PolicyOptions options)
    : course_(course), workload_(workload), options_(options) {}

void OnlinePolicy::start_anew(const Cluster& cluster) {
  const Workload seen = seen_of(workload_, seen_);
  PolicyOptions options = options_;
  options.seed += seen_.size();
  if (seen_.size() < enough_to_learn) {
    current_ = std::make_unique<ScoredPolicy<FragmentsGrader>>(FragmentsGrader(seen, cluster), seen,
                                                               options.ties, options.seed);
  } else {
    current_ = std::make_unique<NeapPolicy>(learn(course_, seen), Situation{course_, {}, arrived_},
                                            seen, cluster, options);
  }
}

void OnlinePolicy::meanwhile(const Cluster& cluster) {
  if (seen_.size() < anew_at_) return;
  start_anew(cluster);
  const std::size_t next = std::max<std::size_t>(1, 2 * seen_.size());
  anew_at_ = seen_.size() < enough_to_learn ? std::min(next, enough_to_learn) : next;
}

std::optional<Choice> OnlinePolicy::choose(const Cluster& cluster, const Pod& pod) {
  std::optional<Choice> choice = current_->choose(cluster, pod);
  seen_.push_back(pod);
  arrived_ += pod.demand.milli();
  return choice;
}

void OnlinePolicy::changed(const Cluster& cluster, std::uint32_t node) {
  current_->changed(cluster, node);
}

}  // namespace neap::simulate
