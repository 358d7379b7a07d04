#include "simulate/leftover/neap_policy.h"

#include <algorithm>

namespace neap::simulate {

namespace {

constexpr std::uint32_t cells_a_model = most_devices + 1;
constexpr std::int64_t refreshes = 200;  // while as much arrives as the cluster holds

std::vector<Scarcity::Want> wants_of(const Workload& workload) {
  std::vector<Scarcity::Want> wants;
  for (const TaskClass& task_class : workload.classes) {
    const Demand& demand = task_class.demand;
    if (demand.count == 0) continue;
    wants.push_back({demand.models, demand.count, demand.milli() * task_class.count});
  }
  return wants;
}

// Found on five traces at loads from 0.85 to 1.05 of the cluster: 50 to 200 and 20 to 200 do as
// well.
constexpr std::int64_t reserve_weight = 50;
constexpr std::int64_t fuller_when_lasting = 100;
constexpr std::int64_t models_weigh_when_lasting = 10;

Valuation valuation_of(const LeftoverTable& table, Course course, const Workload& workload) {
  if (course == Course::filling) return {table, Reserve(), 1};
  std::vector<Reserve::Want> wants;
  for (const TaskClass& task_class : workload.classes) {
    const Demand& demand = task_class.demand;
    wants.push_back({demand.models, demand.count, demand.cpu, task_class.count});
  }
  return {table, Reserve(wants, reserve_weight), fuller_when_lasting};
}

}  // namespace

LeftoverGrader::LeftoverGrader(const LeftoverTable& table, Course course, const Workload& workload,
                               const Cluster& cluster)
    : course_(course),
      valuation_(valuation_of(table, course, workload)),
      scarcity_(wants_of(workload), workload.models.size(),
                course == Course::lasting ? models_weigh_when_lasting : 1),
      cells_(static_cast<std::uint32_t>(workload.models.size()) * cells_a_model),
      known_(cluster.nodes()),
      capacity_(cluster.capacity()) {
  for (const Node& node : known_) {
    scarcity_.count(node, 1);
    potential_.push_back(potential(valuation_, node));
  }
  refresh_when_due();
}

std::optional<Grade> LeftoverGrader::grade(const Node& node, std::uint32_t index,
                                           ShapeRef shape) const {
  if (!node.fits(shape.demand)) return {};
  const Placement placement = best_placement(valuation_, node, potential_[index], shape.demand);
  const std::uint32_t unused = placement.opened > 0 ? node.unused : 0;
  return Grade{placement.score, node.model * cells_a_model + unused};
}

std::int64_t LeftoverGrader::price(ShapeRef shape, std::uint32_t cell) const {
  if (shape.demand.count == 0) return 0;
  const auto unused = static_cast<std::int32_t>(cell % cells_a_model);
  const std::int32_t opened = unused > 0 ? shape.demand.count : 0;
  return scarcity_.price(static_cast<std::uint8_t>(cell / cells_a_model), shape.demand.milli(),
                         unused, opened);
}

void LeftoverGrader::changed(const Node& node, std::uint32_t index) {
  scarcity_.count(known_[index], -1);
  scarcity_.count(node, 1);
  known_[index] = node;
  potential_[index] = potential(valuation_, node);
}

DeviceMask LeftoverGrader::devices(const Node& node, std::uint32_t index, ShapeRef shape) const {
  return best_placement(valuation_, node, potential_[index], shape.demand).devices;
}

void LeftoverGrader::arrived(std::int64_t milli) {
  arrived_ += milli;
  refresh_when_due();
}

void LeftoverGrader::refresh_when_due() {
  const std::int64_t now = arrived_ * refreshes / capacity_;
  if (now == refreshed_) return;
  refreshed_ = now;
  scarcity_.refresh(course_ == Course::lasting ? capacity_
                                               : std::max<std::int64_t>(0, capacity_ - arrived_));
}

}  // namespace neap::simulate
