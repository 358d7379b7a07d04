// An openb trace made ready for runs: models and demands interned, classes counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "simulate/openb/cluster.h"
#include "trace/openb.h"

namespace neap::simulate {

// Pods of one CPU demand, one device demand and one list of models, as it is spelt.
struct TaskClass {
  Demand demand;
  std::string spec;
  std::int64_t count = 0;
};

struct Workload {
  std::vector<std::string> models;
  std::vector<Node> nodes;  // in the order of the file
  std::vector<Pod> pods;
  std::vector<Demand> shapes;
  std::vector<TaskClass> classes;  // the most frequent first
  std::size_t typical = 0;         // so many classes hold 95 % of all pods

  // The weight of a typical class.
  [[nodiscard]] double weight(const TaskClass& task_class) const;
  [[nodiscard]] std::vector<leftover::TaskKind> kinds() const;
  // An empty cluster whose nodes stand in the given order: rows of the node file.
  [[nodiscard]] Cluster cluster(const std::vector<std::uint32_t>& order) const;
  [[nodiscard]] std::int64_t capacity() const;
};

// What is known of a workload after these of its pods: nothing but them, on the same nodes. Shapes
// keep their numbers.
[[nodiscard]] Workload seen_of(const Workload& workload, const std::vector<Pod>& pods);

[[nodiscard]] Result<Workload> make_workload(const std::vector<trace::OpenbNode>& nodes,
                                             const std::vector<trace::OpenbPod>& pods);
[[nodiscard]] Result<Workload> read_workload(const std::string& nodes, const std::string& pods);

}  // namespace neap::simulate
