#include "simulate/openb/protocol.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace neap::simulate {

namespace {

// One curve while it is drawn.
class Binned {
 public:
  // The value in percent.
  void add(std::size_t bin, double value) {
    sums_[bin] += std::round(value * 100);
    ++counts_[bin];
  }

  [[nodiscard]] Curve curve() const {
    Curve curve;
    std::int32_t last = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      if (counts_[bin] > 0) {
        last =
            static_cast<std::int32_t>(std::round(sums_[bin] / static_cast<double>(counts_[bin])));
      }
      curve.values[bin] = last;
    }
    return curve;
  }

 private:
  std::array<double, bins> sums_{};
  std::array<std::int64_t, bins> counts_{};
};

// The nearest whole percent, to even from the middle.
std::size_t bin_of(std::int64_t arrived, std::int64_t capacity) {
  const std::int64_t floor = arrived * 100 / capacity;
  const std::int64_t twice_rest = (arrived * 100 - floor * capacity) * 2;
  const bool up = twice_rest > capacity || (twice_rest == capacity && floor % 2 == 1);
  return static_cast<std::size_t>(std::min<std::int64_t>(floor + (up ? 1 : 0), bins - 1));
}

DecisionTimes times_of(std::vector<std::int64_t> ns) {
  if (ns.empty()) return {};
  std::sort(ns.begin(), ns.end());
  const auto at = [&](std::size_t percent) { return ns[(ns.size() - 1) * percent / 100]; };
  return {at(50), at(99), ns.back()};
}

bool fits_anywhere(const Cluster& cluster, const Pod& pod) {
  return std::any_of(cluster.nodes().begin(), cluster.nodes().end(), [&](const Node& node) {
    return node.memory >= pod.memory && node.fits(pod.demand);
  });
}

}  // namespace

Outcome run_protocol(const Workload& workload, const std::vector<std::uint32_t>& pods,
                     Cluster& cluster, Policy& policy) {
  using Clock = std::chrono::steady_clock;
  const Fragmentation fragmentation(workload);
  const auto capacity = static_cast<double>(cluster.capacity());
  Outcome outcome;
  Binned allocated, fragmented;
  std::vector<std::int64_t> decisions;
  decisions.reserve(pods.size());
  std::vector<double> fragments;  // by node
  for (const Node& node : cluster.nodes()) fragments.push_back(fragmentation.of(node));
  double fragments_in_all = std::accumulate(fragments.begin(), fragments.end(), 0.0);
  std::int64_t arrived = 0;
  const Clock::time_point start = Clock::now();
  Clock::duration meanwhile{};
  for (const std::uint32_t row : pods) {
    const Pod& pod = workload.pods[row];
    const Clock::time_point before = Clock::now();
    policy.meanwhile(cluster);
    const Clock::time_point from = Clock::now();
    meanwhile += from - before;
    const std::optional<Choice> choice = policy.choose(cluster, pod);
    if (choice) {
      cluster.place(pod, *choice);
      policy.changed(cluster, choice->node);
    }
    decisions.push_back((Clock::now() - from) / std::chrono::nanoseconds(1));
    if (choice) {
      const double now = fragmentation.of(cluster.node(choice->node));
      fragments_in_all += now - std::exchange(fragments[choice->node], now);
    } else if (fits_anywhere(cluster, pod)) {
      ++outcome.refused_though_feasible;
    }
    arrived += pod.demand.milli();
    const std::size_t bin = bin_of(arrived, cluster.capacity());
    allocated.add(bin, 100 * static_cast<double>(cluster.allocated()) / capacity);
    fragmented.add(bin, 100 * fragments_in_all / capacity);
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start - meanwhile).count();
  outcome.allocated = allocated.curve();
  outcome.fragmented = fragmented.curve();
  outcome.decision = times_of(std::move(decisions));
  return outcome;
}

}  // namespace neap::simulate
