#include "simulate/openb/departures.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "core/model/check.h"
#include "simulate/openb/fragmentation.h"

namespace neap::simulate {

namespace {

struct Departure {
  double at;
  std::size_t coming;
  Choice from;

  // The earliest on top of the queue.
  bool operator<(const Departure& other) const {
    return at != other.at ? at > other.at : coming > other.coming;
  }
};

class Run {
 public:
  Run(const Workload& workload, const std::vector<Coming>& comings, double warm_up,
      Cluster& cluster, Policy& policy, const Observer& observer)
      : workload_(workload),
        comings_(comings),
        warm_up_(warm_up),
        cluster_(cluster),
        policy_(policy),
        observer_(observer),
        fragmentation_(workload) {
    for (const Node& node : cluster.nodes()) fragments_.push_back(fragmentation_.of(node));
    fragments_in_all_ = std::accumulate(fragments_.begin(), fragments_.end(), 0.0);
  }

  WaitingOutcome run(const std::stop_token& stop) {
    for (std::size_t next = 0; next < comings_.size() || !departures_.empty();) {
      if (stop.stop_requested()) return {};
      const bool arrival = next < comings_.size() &&
                           (departures_.empty() || comings_[next].at < departures_.top().at);
      if (arrival) {
        pass_to(comings_[next].at);
        arrive(next++);
      } else {
        const Departure departure = departures_.top();
        departures_.pop();
        pass_to(departure.at);
        cluster_.remove(pod_of(departure.coming), departure.from);
        policy_.departed(pod_of(departure.coming));
        changed(departure.from.node);
        place_waiting(departure.from.node);
      }
    }
    return outcome();
  }

 private:
  // Of one shape and one memory: what does not fit for the first fits for none of them.
  using Alike = std::pair<std::uint32_t, std::int64_t>;

  [[nodiscard]] const Pod& pod_of(std::size_t coming) const {
    return workload_.pods[comings_[coming].row];
  }

  void arrive(std::size_t coming) {
    const Pod& pod = pod_of(coming);
    const Alike alike{pod.shape, pod.memory.value};
    const auto waiting = waiting_.find(alike);
    if (waiting != waiting_.end()) {
      waiting->second.push_back(coming);
      policy_.waits(pod);
    } else if (!place(coming)) {
      waiting_[alike].push_back(coming);
      policy_.waits(pod);
    }
  }

  bool place(std::size_t coming) {
    const Pod& pod = pod_of(coming);
    const auto choice = policy_.choose(cluster_, pod);
    if (!choice) return false;
    cluster_.place(pod, *choice);
    changed(choice->node);
    const Coming& came = comings_[coming];
    departures_.push({now_ + came.length, coming, *choice});
    if (came.at >= warm_up_ && came.at <= comings_.back().at) waits_.push_back(now_ - came.at);
    return true;
  }

  // What has waited fits nowhere but on the node that has just got something back.
  void place_waiting(std::uint32_t node) {
    while (true) {
      auto first = waiting_.end();
      for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
        const Pod& pod = pod_of(at->second.front());
        if (cluster_.node(node).memory < pod.memory || !cluster_.node(node).fits(pod.demand)) {
          continue;
        }
        if (first == waiting_.end() || at->second.front() < first->second.front()) first = at;
      }
      if (first == waiting_.end()) return;
      NEAP_CHECK(place(first->second.front()));
      policy_.waits_no_longer(pod_of(first->second.front()));
      first->second.pop_front();
      if (first->second.empty()) waiting_.erase(first);
    }
  }

  void changed(std::uint32_t node) {
    policy_.changed(cluster_, node);
    if (observer_) observer_(now_, cluster_, node);
    const double now = fragmentation_.of(cluster_.node(node));
    fragments_in_all_ += now - std::exchange(fragments_[node], now);
  }

  // Means over time count while pods arrive.
  void pass_to(double at) {
    const double from = std::max(now_, warm_up_);
    const double to = std::min(at, comings_.back().at);
    if (to > from) {
      allocated_ += (to - from) * static_cast<double>(cluster_.allocated());
      fragmented_ += (to - from) * fragments_in_all_;
      measured_ += to - from;
    }
    now_ = at;
  }

  WaitingOutcome outcome() {
    WaitingOutcome outcome;
    const double scale = measured_ * static_cast<double>(cluster_.capacity());
    outcome.allocated = allocated_ / scale;
    outcome.fragmented = fragmented_ / scale;
    for (const auto& [alike, pods] : waiting_) {
      outcome.never_placed += static_cast<std::int64_t>(pods.size());
    }
    if (waits_.empty()) return outcome;
    const auto count = static_cast<double>(waits_.size());
    outcome.mean_wait = std::accumulate(waits_.begin(), waits_.end(), 0.0) / count;
    std::sort(waits_.begin(), waits_.end());
    outcome.p99_wait = waits_[(waits_.size() - 1) * 99 / 100];
    const auto at_once = std::upper_bound(waits_.begin(), waits_.end(), 0.0) - waits_.begin();
    outcome.waited = 1 - static_cast<double>(at_once) / count;
    return outcome;
  }

  const Workload& workload_;
  const std::vector<Coming>& comings_;
  double warm_up_;
  Cluster& cluster_;
  Policy& policy_;
  const Observer& observer_;
  Fragmentation fragmentation_;
  std::vector<double> fragments_;  // by node
  double fragments_in_all_ = 0;
  double now_ = 0;
  std::priority_queue<Departure> departures_;
  std::map<Alike, std::deque<std::size_t>> waiting_;
  std::vector<double> waits_;
  double allocated_ = 0, fragmented_ = 0, measured_ = 0;
};

}  // namespace

std::vector<Coming> draw_comings(const Workload& workload, const std::vector<double>& recorded,
                                 ComingOptions options) {
  const bool exponential = options.kind == Lifetimes::exponential;
  NEAP_CHECK(exponential || recorded.size() == workload.pods.size());
  double lengths = 0, device_time = 0;
  for (std::size_t row = 0; row < workload.pods.size(); ++row) {
    const double length = exponential ? 1 : recorded[row];
    lengths += length;
    device_time += length * workload.pods[row].demand.milli();
  }
  const auto pods = static_cast<double>(workload.pods.size());
  const double mean_length = lengths / pods;
  // Device time that one pod asks for on average, where the mean length is one.
  const double asked = device_time / mean_length / pods;
  const double rate = options.load * static_cast<double>(workload.capacity()) / asked;
  trace::Chance chance(options.seed);
  const auto gap = [&chance] { return -std::log1p(-chance.unit()); };
  std::vector<Coming> comings;
  if (options.start == Start::balanced) {
    for (std::uint32_t row = 0; row < workload.pods.size(); ++row) {
      const double length = exponential ? 1 : recorded[row] / mean_length;
      const double expected = rate / pods * length;
      const auto present = static_cast<std::int64_t>(expected + chance.unit());
      for (std::int64_t p = 0; p < present; ++p) {
        comings.push_back({row, 0, exponential ? gap() : chance.unit() * length});
      }
    }
    chance.shuffle(comings);
  }
  for (double at = gap() / rate; at < options.lifetimes; at += gap() / rate) {
    const auto row = static_cast<std::uint32_t>(chance.below(workload.pods.size()));
    const double length = gap();
    comings.push_back({row, at, exponential ? length : recorded[row] / mean_length});
  }
  return comings;
}

std::int32_t residual_percent_of(const std::vector<double>& recorded) {
  double sum = 0, squares = 0;
  for (const double length : recorded) {
    sum += length;
    squares += length * length;
  }
  const double mean = sum / static_cast<double>(recorded.size());
  const double residual = squares / static_cast<double>(recorded.size()) / (2 * mean * mean);
  return static_cast<std::int32_t>(std::min(100 * residual, 1e6));
}

WaitingOutcome run_with_departures(const Workload& workload, const std::vector<Coming>& comings,
                                   double warm_up, Cluster& cluster, Policy& policy,
                                   const Observer& observer, const std::stop_token& stop) {
  NEAP_CHECK(!comings.empty());
  return Run(workload, comings, warm_up, cluster, policy, observer).run(stop);
}

}  // namespace neap::simulate
