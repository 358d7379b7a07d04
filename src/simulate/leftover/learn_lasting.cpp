#include <cstddef>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <vector>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/leftover/sightings.h"
#include "simulate/openb/departures.h"
#include "simulate/openb/policy.h"
#include "trace/chance.h"

namespace neap::simulate {

namespace {

// Watches every device of a node that has changed for the length of the horizon.
class Watch {
 public:
  Watch(const Cluster& cluster, const LearnLastingOptions& options, Sums& sums)
      : options_(options), sums_(sums), devices_(cluster.nodes().size() * most_devices) {
    for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) {
      for (std::uint32_t i = 0; i < cluster.node(n).devices; ++i) {
        devices_[n * most_devices + i].idle = cluster.node(n).idle[i];
      }
    }
  }

  void look(double now, const Cluster& cluster, std::uint32_t index) {
    if (now > options_.lifetimes) return;
    const Node& node = cluster.node(index);
    const std::size_t shared = row_of_shared(node.cpu);
    const std::size_t unused = row_of_unused(node.cpu, node.free);
    for (std::uint32_t i = 0; i < node.devices; ++i) {
      const std::uint32_t device = index * most_devices + i;
      const double integral = integral_at(device, now);
      devices_[device].idle = node.idle[i];
      if (now < warm_up) continue;
      sightings_.push_back(
          {now, integral, device, node.idle[i] == whole ? unused : shared, step_of(node.idle[i])});
    }
    while (!sightings_.empty() && sightings_.front().at + options_.horizon <= now) settle(now);
  }

  static constexpr double warm_up = 1;

 private:
  struct Device {
    std::int32_t idle = 0;
    double since = 0;
    double integral = 0;  // of what was idle, over time
  };
  struct Sighting {
    double at;
    double integral;
    std::uint32_t device;
    std::size_t row, step;
  };

  double integral_at(std::uint32_t index, double now) {
    Device& device = devices_[index];
    device.integral += (now - device.since) * device.idle;
    device.since = now;
    return device.integral;
  }

  void settle(double now) {
    const Sighting& s = sightings_.front();
    const double mean = (integral_at(s.device, now) - s.integral) / (now - s.at);
    sums_.add(s.row, s.step, static_cast<std::int64_t>(mean));
    sightings_.pop_front();
  }

  const LearnLastingOptions& options_;
  Sums& sums_;
  std::vector<Device> devices_;
  std::deque<Sighting> sightings_;
};

}  // namespace

LeftoverTable learn_lasting(const Workload& workload, LearnLastingOptions options) {
  trace::Chance chance(options.seed);
  const FirstGuess guess = first_guess(workload);
  Sums sums;
  std::optional<LeftoverTable> current;
  for (int iteration = 0; iteration < options.iterations && !options.stop.stop_requested();
       ++iteration) {
    const std::vector<Coming> comings = draw_comings(
        workload, {},
        {options.load, options.lifetimes, Lifetimes::exponential, Start::empty, chance.next()});
    std::vector<std::uint32_t> order(workload.nodes.size());
    std::iota(order.begin(), order.end(), 0U);
    chance.shuffle(order);
    Cluster cluster = workload.cluster(order);
    std::unique_ptr<Policy> policy;
    if (current) {
      policy = std::make_unique<NeapPolicy>(*current, Situation{Course::lasting}, workload, cluster,
                                            PolicyOptions{});
    } else {
      policy = make_reference_policy("fgd", workload, cluster, {});
    }
    Watch watch(cluster, options, sums);
    // What departs after the last arrivals teaches nothing.
    std::stop_source over;
    const std::stop_callback asked(options.stop, [&over] { over.request_stop(); });
    (void)run_with_departures(
        workload, comings, Watch::warm_up, cluster, *policy,
        [&](double now, const Cluster& c, std::uint32_t node) {
          watch.look(now, c, node);
          if (now > options.lifetimes) over.request_stop();
        },
        over.get_token());
    current = table_of(sums, guess);
  }
  return current.value_or(table_of(sums, guess));
}

}  // namespace neap::simulate
