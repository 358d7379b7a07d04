#include "simulate/openb/policy.h"
#include "simulate/openb/reference_graders.h"

namespace neap::simulate {

namespace {

// Any node that fits, and of its devices any that is free enough.
class RandomPolicy : public Policy {
 public:
  explicit RandomPolicy(std::uint64_t seed) : chance_(seed) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override {
    fitting_.clear();
    for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) {
      const Node& node = cluster.node(n);
      if (node.memory >= pod.memory && node.fits(pod.demand)) fitting_.push_back(n);
    }
    if (fitting_.empty()) return {};
    const std::uint32_t n = fitting_[chance_.below(fitting_.size())];
    const Node& node = cluster.node(n);
    if (!pod.demand.shares()) return Choice{n, first_unused(node, pod.demand.count)};
    std::vector<unsigned> devices;
    for (unsigned i = 0; i < node.devices; ++i) {
      if (node.idle[i] >= pod.demand.each) devices.push_back(i);
    }
    return Choice{n, 1U << devices[chance_.below(devices.size())]};
  }
  void changed(const Cluster&, std::uint32_t) override {}

 private:
  trace::Chance chance_;
  std::vector<std::uint32_t> fitting_;
};

}  // namespace

std::unique_ptr<Policy> make_reference_policy(std::string_view name, const Workload& workload,
                                              const Cluster& cluster, PolicyOptions options) {
  const auto plain = [&](Score score) {
    return std::make_unique<ScoredPolicy<PlainGrader>>(PlainGrader(score), workload, options.ties,
                                                       options.seed);
  };
  if (name == "random") return std::make_unique<RandomPolicy>(options.seed);
  if (name == "dotprod") return plain(dot_product_score);
  if (name == "clustering") return plain(clustering_score);
  if (name == "packing") return plain(packing_score);
  if (name == "bestfit") return plain(best_fit_score);
  if (name == "fgd") {
    return std::make_unique<ScoredPolicy<FgdGrader>>(FgdGrader(workload, cluster), workload,
                                                     options.ties, options.seed);
  }
  return nullptr;
}

}  // namespace neap::simulate
