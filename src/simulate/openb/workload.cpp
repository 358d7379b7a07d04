#include "simulate/openb/workload.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "trace/read_all.h"

namespace neap::simulate {

namespace {

// Bits of the models that the trace's nodes have. A model that no node has gives a bit of its
// own, so that a pod which names it alone fits nowhere.
class Models {
 public:
  explicit Models(std::vector<std::string>& names) : names_(names) {}

  [[nodiscard]] Result<std::uint8_t> index(std::string_view name) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at != names_.end()) return static_cast<std::uint8_t>(at - names_.begin());
    if (names_.size() == most_models) {
      return fail(ErrorCode::too_large,
                  "more than " + std::to_string(most_models) + " device models");
    }
    names_.emplace_back(name);
    return static_cast<std::uint8_t>(names_.size() - 1);
  }

  [[nodiscard]] Result<std::uint64_t> mask(std::string_view spec) {
    std::uint64_t bits = 0;
    while (!spec.empty()) {
      const std::string_view name = spec.substr(0, spec.find('|'));
      spec.remove_prefix(std::min(spec.size(), name.size() + 1));
      if (name.empty()) continue;
      const auto at = index(name);
      if (!at) return tl::unexpected(at.error());
      bits |= std::uint64_t{1} << *at;
    }
    return bits;
  }

 private:
  std::vector<std::string>& names_;
};

Result<void> add_traced_nodes(const std::vector<trace::OpenbNode>& rows, Models& models,
                              Workload& into) {
  for (const trace::OpenbNode& row : rows) {
    if (row.gpus > most_devices) {
      return fail(ErrorCode::too_large, "node " + row.name + " has more than " +
                                            std::to_string(most_devices) + " devices");
    }
    const auto model = models.index(row.model);
    if (!model) return tl::unexpected(model.error());
    Node& node = into.nodes.emplace_back();
    node.cpu = static_cast<std::int32_t>(row.cpu_milli);
    node.memory = row.memory;
    node.devices = static_cast<std::uint8_t>(row.gpus);
    node.unused = static_cast<std::uint16_t>((1U << node.devices) - 1);
    node.by_role[0] = node.unused;
    node.free = row.gpus * whole;
    node.model = *model;
    node.idle.fill(0);
    std::fill_n(node.idle.begin(), row.gpus, whole);
  }
  if (into.capacity() > 0) return {};
  return fail(ErrorCode::invalid_argument, "expected nodes with devices");
}

// So many of the most frequent classes make up 95 %.
std::size_t count_typical(const std::vector<TaskClass>& classes) {
  std::int64_t all = 0, covered = 0;
  for (const TaskClass& task_class : classes) all += task_class.count;
  std::size_t typical = 0;
  while (covered * 100 < all * 95) covered += classes[typical++].count;
  return typical;
}

void sort_by_count(std::vector<TaskClass>& classes) {
  std::stable_sort(classes.begin(), classes.end(),
                   [](const TaskClass& a, const TaskClass& b) { return a.count > b.count; });
}

using DemandKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::uint64_t>;
// In the order in which classes of one count stand: by CPU, share, devices, models.
using ClassKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::string>;

Result<void> add_traced_pods(const std::vector<trace::OpenbPod>& rows, Models& models,
                             Workload& into) {
  std::map<DemandKey, std::uint32_t> shapes;
  std::map<ClassKey, TaskClass> classes;
  for (const trace::OpenbPod& row : rows) {
    if (row.gpus > most_devices) {
      return fail(ErrorCode::too_large, "pod " + row.name + " asks for more than " +
                                            std::to_string(most_devices) + " devices");
    }
    const auto mask = models.mask(row.models);
    if (!mask) return tl::unexpected(mask.error());
    const Demand demand{static_cast<std::int32_t>(row.cpu_milli), row.gpus,
                        static_cast<std::int32_t>(row.each.value), *mask};
    const auto fresh = static_cast<std::uint32_t>(into.shapes.size());
    const auto [shape, added] =
        shapes.try_emplace({demand.cpu, demand.count, demand.each, demand.models}, fresh);
    if (added) into.shapes.push_back(demand);
    into.pods.push_back({demand, row.memory, shape->second});
    TaskClass& task_class = classes[{demand.cpu, demand.each, demand.count, row.models}];
    task_class.demand = demand;
    task_class.spec = row.models;
    ++task_class.count;
  }
  for (auto at = classes.rbegin(); at != classes.rend(); ++at) into.classes.push_back(at->second);
  sort_by_count(into.classes);
  return {};
}

}  // namespace

double Workload::weight(const TaskClass& task_class) const {
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < typical; ++i) covered += classes[i].count;
  const auto all = static_cast<double>(pods.size());
  return (static_cast<double>(task_class.count) / all) / (static_cast<double>(covered) / all);
}

std::vector<leftover::TaskKind> Workload::kinds() const {
  std::vector<leftover::TaskKind> kinds;
  for (const TaskClass& task_class : classes) {
    kinds.push_back({task_class.demand, task_class.count});
  }
  return kinds;
}

std::int64_t Workload::capacity() const {
  std::int64_t milli = 0;
  for (const Node& node : nodes) milli += std::int64_t{node.devices} * whole;
  return milli;
}

Cluster Workload::cluster(const std::vector<std::uint32_t>& order) const {
  std::vector<Node> ordered;
  ordered.reserve(order.size());
  for (const std::uint32_t row : order) ordered.push_back(nodes[row]);
  return Cluster(std::move(ordered));
}

Workload seen_of(const Workload& workload, const std::vector<Pod>& pods) {
  Workload seen;
  seen.models = workload.models;
  seen.nodes = workload.nodes;
  seen.shapes = workload.shapes;
  seen.pods = pods;
  std::map<std::uint32_t, std::size_t> class_of_shape;
  for (const Pod& pod : pods) {
    const auto [at, added] = class_of_shape.try_emplace(pod.shape, seen.classes.size());
    if (added) seen.classes.push_back({pod.demand, "", 0});
    ++seen.classes[at->second].count;
  }
  sort_by_count(seen.classes);
  seen.typical = count_typical(seen.classes);
  return seen;
}

Result<Workload> make_workload(const std::vector<trace::OpenbNode>& nodes,
                               const std::vector<trace::OpenbPod>& pods) {
  Workload workload;
  Models models(workload.models);
  if (auto done = add_traced_nodes(nodes, models, workload); !done)
    return tl::unexpected(done.error());
  if (auto done = add_traced_pods(pods, models, workload); !done)
    return tl::unexpected(done.error());
  if (workload.pods.empty()) return fail(ErrorCode::invalid_argument, "expected pods");
  workload.typical = count_typical(workload.classes);
  return workload;
}

Result<Workload> read_workload(const std::string& nodes, const std::string& pods) {
  const auto node_rows = trace::read_file<trace::OpenbNode, trace::OpenbNodeReader>(nodes);
  if (!node_rows) return tl::unexpected(node_rows.error());
  const auto pod_rows = trace::read_file<trace::OpenbPod, trace::OpenbPodReader>(pods);
  if (!pod_rows) return tl::unexpected(pod_rows.error());
  return make_workload(*node_rows, *pod_rows);
}

}  // namespace neap::simulate
