#include "simulate/leftover/learn.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/policy.h"
#include "trace/chance.h"

namespace neap::simulate {

namespace {

// What has been seen: for devices in one row and step, how much they had free in the end.
struct Sums {
  std::array<std::array<std::int64_t, idle_steps>, core_rows> leftover{};
  std::array<std::array<std::int64_t, idle_steps>, core_rows> seen{};
};

// A device as it stood at one moment.
struct Sighting {
  std::uint32_t node;
  std::uint8_t device;
  std::uint8_t row;
  std::uint8_t step;
};

class Stream {
 public:
  Stream(const Workload& workload, trace::Chance& chance)
      : workload_(workload), chance_(chance), cluster_(shuffled(workload, chance)) {}

  [[nodiscard]] Cluster& cluster() { return cluster_; }

  // Places pods until 5 % more has arrived than the cluster holds. The mean unallocated part
  // about 100 %.
  double run(Policy& policy, Sums* sums) {
    for (std::uint32_t n = 0; n < cluster_.nodes().size(); ++n) look_at(n);
    const std::int64_t capacity = cluster_.capacity();
    std::int64_t arrived = 0;
    bool added = false;
    double unallocated = 0, records = 0;
    while (arrived * 100 < capacity * 105) {
      const Pod& pod = workload_.pods[chance_.below(workload_.pods.size())];
      const auto choice = policy.choose(cluster_, pod);
      if (choice) {
        cluster_.place(pod, *choice);
        policy.changed(cluster_, choice->node);
      }
      arrived += pod.demand.milli();
      if (choice && arrived < capacity) look_at(choice->node);
      if (arrived >= capacity && !added) {
        if (sums != nullptr) add_leftovers(*sums);
        added = true;
      }
      if (arrived * 200 >= capacity * 199 && arrived * 200 <= capacity * 201) {
        unallocated += static_cast<double>(capacity - cluster_.allocated());
        records += 1;
      }
    }
    return unallocated / std::max(records, 1.0) / static_cast<double>(capacity);
  }

 private:
  static Cluster shuffled(const Workload& workload, trace::Chance& chance) {
    std::vector<std::uint32_t> order(workload.nodes.size());
    std::iota(order.begin(), order.end(), 0U);
    chance.shuffle(order);
    return workload.cluster(order);
  }

  void look_at(std::uint32_t index) {
    const Node& node = cluster_.node(index);
    const auto shared = static_cast<std::uint8_t>(row_of_shared(node.cpu));
    const auto unused = static_cast<std::uint8_t>(row_of_unused(node.cpu, node.free));
    for (std::uint8_t i = 0; i < node.devices; ++i) {
      sightings_.push_back({index, i, node.idle[i] == whole ? unused : shared,
                            static_cast<std::uint8_t>(step_of(node.idle[i]))});
    }
  }

  void add_leftovers(Sums& sums) const {
    for (const Sighting& s : sightings_) {
      sums.leftover[s.row][s.step] += cluster_.node(s.node).idle[s.device];
      ++sums.seen[s.row][s.step];
    }
  }

  const Workload& workload_;
  trace::Chance& chance_;
  Cluster cluster_;
  std::vector<Sighting> sightings_;
};

// Before anything is seen: free parts that are too small for a pod stay free.
std::array<double, idle_steps> first_guess(const Workload& workload) {
  std::array<double, idle_steps> guess{};
  double all = 0;
  for (std::size_t c = 0; c < workload.typical; ++c) {
    const TaskClass& task_class = workload.classes[c];
    if (task_class.demand.count != 1) continue;
    const auto count = static_cast<double>(task_class.count);
    all += count;
    for (std::size_t step = 0; step < idle_steps; ++step) {
      const auto idle = static_cast<std::int32_t>(step * 10);
      if (idle < task_class.demand.each) guess[step] += count * idle;
    }
  }
  for (double& g : guess) g /= std::max(all, 1.0);
  return guess;
}

// Rows and steps that were seldom seen are drawn towards the mean of their step, and steps that
// were seldom seen towards the first guess.
LeftoverTable table_of(const Sums& sums, const std::array<double, idle_steps>& guess) {
  constexpr double shrinkage = 10;
  LeftoverTable table;
  for (std::size_t step = 0; step < idle_steps; ++step) {
    double leftover = shrinkage * guess[step], seen = shrinkage;
    for (std::size_t row = 0; row < core_rows; ++row) {
      leftover += static_cast<double>(sums.leftover[row][step]);
      seen += static_cast<double>(sums.seen[row][step]);
    }
    const double mean = leftover / seen;
    for (std::size_t row = 0; row < core_rows; ++row) {
      const double value = (static_cast<double>(sums.leftover[row][step]) + shrinkage * mean) /
                           (static_cast<double>(sums.seen[row][step]) + shrinkage);
      table.values[row][step] =
          static_cast<std::int32_t>(std::llround(value * static_cast<double>(potential_unit)));
    }
  }
  return table;
}

// The table that leaves least, on streams that are the same for all.
LeftoverTable best_of(const std::vector<LeftoverTable>& tables, const Workload& workload,
                      std::uint64_t seed, int streams) {
  const LeftoverTable* best = &tables.back();
  double least = static_cast<double>(streams) + 1;
  for (const LeftoverTable& table : tables) {
    trace::Chance chance(seed);
    double unallocated = 0;
    for (int s = 0; s < streams; ++s) {
      Stream stream(workload, chance);
      NeapPolicy policy(table, workload, stream.cluster(), PolicyOptions{});
      unallocated += stream.run(policy, nullptr);
    }
    if (unallocated >= least) continue;
    least = unallocated;
    best = &table;
  }
  return *best;
}

}  // namespace

LeftoverTable learn_leftover(const Workload& workload, LearnOptions options) {
  trace::Chance chance(options.seed);
  const std::array<double, idle_steps> guess = first_guess(workload);
  Sums sums;
  std::vector<LeftoverTable> tables;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    for (int s = 0; s < options.streams; ++s) {
      Stream stream(workload, chance);
      std::unique_ptr<Policy> policy;
      if (tables.empty()) {
        policy = make_reference_policy("fgd", workload, stream.cluster(), {});
      } else {
        policy = std::make_unique<NeapPolicy>(tables.back(), workload, stream.cluster(),
                                              PolicyOptions{});
      }
      stream.run(*policy, &sums);
    }
    tables.push_back(table_of(sums, guess));
  }
  const auto judged =
      std::min<std::size_t>(tables.size(), static_cast<std::size_t>(options.judged));
  tables.erase(tables.begin(), tables.end() - static_cast<std::ptrdiff_t>(judged));
  return best_of(tables, workload, chance.next(), options.judging);
}

}  // namespace neap::simulate
