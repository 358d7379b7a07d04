#include "simulate/leftover/learn.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "simulate/leftover/neap_policy.h"
#include "simulate/leftover/sightings.h"
#include "simulate/openb/policy.h"
#include "trace/chance.h"

namespace neap::simulate {

namespace {

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
      sums.add(s.row, s.step, cluster_.node(s.node).idle[s.device]);
    }
  }

  const Workload& workload_;
  trace::Chance& chance_;
  Cluster cluster_;
  std::vector<Sighting> sightings_;
};

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
      NeapPolicy policy(table, Situation{Course::filling}, workload, stream.cluster(), {});
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
        policy = std::make_unique<NeapPolicy>(tables.back(), Situation{Course::filling}, workload,
                                              stream.cluster(), PolicyOptions{});
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
