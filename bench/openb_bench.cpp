// Speed of placement as a ratio to a plain scan with the published policy's score, in one run.
//
//   openb_bench [NODES PODS ORDER SEED]   files of the openb trace; without: a cluster drawn from
//                                         published statistics, of the same size
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulate/leftover/learn.h"
#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/experiment.h"
#include "simulate/openb/reference_graders.h"
#include "trace/generate.h"

namespace {

using namespace neap;
using namespace neap::simulate;

// Of this thread: what others run on the machine is not counted.
std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

struct Times {
  std::vector<std::int64_t> ns;

  void sort() { std::sort(ns.begin(), ns.end()); }
  [[nodiscard]] double us_at(std::size_t per_thousand) const {
    return static_cast<double>(ns[(ns.size() - 1) * per_thousand / 1000]) / 1e3;
  }
  [[nodiscard]] double mean_us() const {
    return static_cast<double>(std::accumulate(ns.begin(), ns.end(), std::int64_t{0})) / 1e3 /
           static_cast<double>(ns.size());
  }
};

// Every node, for every decision: what the index is measured by.
class PlainFgdScan {
 public:
  explicit PlainFgdScan(const Workload& workload) : fragmentation_(workload) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) const {
    std::optional<Choice> best;
    std::int32_t highest = -1;
    for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) {
      const Node& node = cluster.node(n);
      if (node.memory < pod.memory || !node.fits(pod.demand)) continue;
      const auto gain = FgdGrader::gain(fragmentation_, node, fragmentation_.of(node), pod.demand);
      if (!gain || gain->score <= highest) continue;
      highest = gain->score;
      best = Choice{n, gain->devices};
    }
    return best;
  }

 private:
  Fragmentation fragmentation_;
};

// The time of every decision, with what it takes to note the change.
Times run(const Workload& workload, const std::vector<std::uint32_t>& pods, Cluster cluster,
          Policy& policy) {
  Times times;
  times.ns.reserve(pods.size());
  for (const std::uint32_t row : pods) {
    const Pod& pod = workload.pods[row];
    const std::int64_t from = cpu_ns();
    const auto choice = policy.choose(cluster, pod);
    if (choice) {
      cluster.place(pod, *choice);
      policy.changed(cluster, choice->node);
    }
    times.ns.push_back(cpu_ns() - from);
  }
  times.sort();
  return times;
}

// A scan of every fortieth pod: the others are placed by the policy, without being timed.
Times scan(const Workload& workload, const std::vector<std::uint32_t>& pods, Cluster cluster,
           Policy& policy, std::size_t every) {
  const PlainFgdScan plain(workload);
  Times times;
  for (std::size_t p = 0; p < pods.size(); ++p) {
    const Pod& pod = workload.pods[pods[p]];
    if (p % every == 0) {
      const std::int64_t from = cpu_ns();
      const auto choice = plain.choose(cluster, pod);
      times.ns.push_back(cpu_ns() - from);
      if (choice && !cluster.node(choice->node).fits(pod.demand)) std::abort();
    }
    if (const auto choice = policy.choose(cluster, pod)) {
      cluster.place(pod, *choice);
      policy.changed(cluster, choice->node);
    }
  }
  times.sort();
  return times;
}

// The decisions that follow when a new table is learned half way: all scores are then new.
Times after_new_table(const Workload& workload, const std::vector<std::uint32_t>& pods,
                      Cluster cluster, const LeftoverTable& table) {
  constexpr std::size_t watched = 2'000;
  const auto half = static_cast<std::ptrdiff_t>(pods.size() / 2);
  std::int64_t arrived = 0;
  NeapPolicy before(table, Situation{Course::filling}, workload, cluster, {});
  for (auto row = pods.begin(); row != pods.begin() + half; ++row) {
    const Pod& pod = workload.pods[*row];
    arrived += pod.demand.milli();
    if (const auto choice = before.choose(cluster, pod)) {
      cluster.place(pod, *choice);
      before.changed(cluster, choice->node);
    }
  }
  NeapPolicy anew(table, Situation{Course::filling, {}, arrived}, workload, cluster, {});
  const auto end = pods.begin() + half +
                   static_cast<std::ptrdiff_t>(std::min(watched, pods.size() - pods.size() / 2));
  return run(workload, {pods.begin() + half, end}, std::move(cluster), anew);
}

void print(const char* what, const Times& times, double scan_us) {
  std::printf("  %-22s %8.2f us mean %8.2f us p50 %8.2f us p99 %9.2f us max  %9.0f/s", what,
              times.mean_us(), times.us_at(500), times.us_at(990), times.us_at(1000),
              1e6 / times.mean_us());
  if (scan_us > 0) std::printf("  %.0f times a plain scan", scan_us / times.mean_us());
  std::printf("\n");
}

void compare(const std::string& title, const Workload& workload, const trace::OpenbOrder& order,
             const LeftoverTable& table, std::size_t every) {
  std::printf("%s: %zu nodes, %zu pods, %zu shapes\n", title.c_str(), workload.nodes.size(),
              order.pods.size(), workload.shapes.size());
  const Cluster cluster = workload.cluster(order.nodes);
  NeapPolicy for_scan(table, Situation{Course::filling}, workload, cluster, {});
  const Times plain = scan(workload, order.pods, cluster, for_scan, every);
  print("plain fgd scan", plain, 0);
  NeapPolicy neap_policy(table, Situation{Course::filling}, workload, cluster, {});
  const Times neap_times = run(workload, order.pods, cluster, neap_policy);
  print("neap", neap_times, plain.mean_us());
  print("neap after a new table", after_new_table(workload, order.pods, cluster, table), 0);
  const auto fgd = make_reference_policy("fgd", workload, cluster, {});
  print("fgd with the index", run(workload, order.pods, cluster, *fgd), plain.mean_us());
  std::printf("  neap in all: %.3f s\n",
              neap_times.mean_us() * static_cast<double>(order.pods.size()) / 1e6);
}

Workload drawn(std::size_t nodes, std::size_t pods, std::size_t shapes) {
  std::vector<trace::OpenbNode> node_rows;
  for (std::size_t n = 0; n < nodes; ++n) {
    const bool small = n % 3 == 0;
    node_rows.push_back({"n" + std::to_string(n), small ? 104'000 : 96'000, MiB(524'288),
                         small ? 2 : 8, small ? "T4" : "G2"});
  }
  std::vector<trace::OpenbPod> pod_rows;
  trace::PodGenerator generator(seconds(1), hours(1), 1);
  trace::Chance chance(2);
  for (std::size_t p = 0; p < pods; ++p) {
    const auto job = std::get<trace::JobArrival>(generator.next().what);
    // More shapes than the sixteen of the generator, of which some are much rarer than others.
    const auto variant =
        static_cast<std::int64_t>(std::min(chance.below(shapes / 16), chance.below(shapes / 16)));
    pod_rows.push_back(
        {job.name, job.cpu_milli + 10 * variant, job.memory, job.gpus, job.each, "", {}, {}});
  }
  auto workload = make_workload(node_rows, pod_rows);
  if (!workload) std::abort();
  return std::move(*workload);
}

// The same cluster eight times over, all nodes with eight devices.
Workload grown(std::size_t nodes, std::size_t shapes) {
  Workload workload = drawn(nodes, 20'000, shapes);
  for (Node& node : workload.nodes) {
    node.cpu = 96'000;
    node.devices = 8;
    node.unused = node.by_role[0] = 0xff;
    node.free = 8 * whole;
    std::fill_n(node.idle.begin(), 8, static_cast<std::int16_t>(whole));
  }
  return workload;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) {
    const auto workload = read_workload(argv[1], argv[2]);
    auto bytes = trace::open_bytes(argv[3]);
    if (!workload || !bytes) return 1;
    const auto order =
        trace::read_openb_order(std::move(*bytes), std::atoll(argv[4]),
                                {static_cast<std::uint32_t>(workload->pods.size()),
                                 static_cast<std::uint32_t>(workload->nodes.size())});
    if (!order) return 1;
    compare("recorded", *workload, *order, learn_leftover(*workload), 40);
    return 0;
  }
  const Workload small = drawn(1'213, 8'152, 96);
  const LeftoverTable table = learn_leftover(small, {.iterations = 4, .streams = 2, .judged = 1});
  compare("drawn, the size of openb", small, draw_order(small, 1), table, 40);
  for (const std::size_t shapes : {std::size_t{96}, std::size_t{448}}) {
    const Workload large = grown(10'000, shapes);
    compare("drawn, 80,000 devices", large, draw_order(large, 1), table, 2'000);
  }
  return 0;
}
