#include "simulate/openb/fragmentation.h"

namespace neap::simulate {

Fragmentation::Fragmentation(const Workload& workload) {
  for (std::size_t i = 0; i < workload.typical; ++i) {
    const TaskClass& task_class = workload.classes[i];
    add({task_class.demand, workload.weight(task_class)});
  }
}

Fragmentation::Fragmentation(const std::vector<Weighted>& classes) {
  for (const Weighted& weighted : classes) add(weighted);
}

void Fragmentation::add(const Weighted& weighted) {
  std::uint32_t cut = 0;
  while (cut < cuts_.size() && cuts_[cut].each != weighted.demand.each) ++cut;
  if (cut == cuts_.size()) cuts_.push_back({weighted.demand.each, 0, 0});
  classes_.push_back({weighted.demand, cut, weighted.weight});
}

// The published code adds up by category, in the order of the classes, and then the categories.
// Its truncated scores depend on the last bits, so that order is kept.
double Fragmentation::of(const Node& node) const {
  for (Cut& cut : cuts_) {
    cut.enough = 0;
    cut.below = 0;
    for (int i = 0; i < node.devices; ++i) {
      const std::int32_t idle = node.idle[static_cast<std::size_t>(i)];
      const bool enough = idle >= cut.each;
      cut.enough += enough ? 1 : 0;
      cut.below += enough ? 0 : idle;
    }
  }
  double lacking_both = 0, lacking_devices = 0, lacking_cpu = 0;
  double cpu_only_lacking = 0, cpu_only = 0, wrong_model = 0;
  const double all = node.free;
  for (const Class& c : classes_) {
    const bool cpu = node.cpu >= c.demand.cpu;
    const Cut& cut = cuts_[c.cut];
    if (c.demand.each == 0) {
      (cpu ? cpu_only : cpu_only_lacking) += c.weight * all;
    } else if (c.demand.models != 0 && (c.demand.models >> node.model & 1U) == 0) {
      wrong_model += c.weight * all;
    } else if (cut.enough >= c.demand.count) {
      if (cpu) {
        lacking_devices += c.weight * cut.below;
      } else {
        lacking_cpu += c.weight * all;
      }
    } else {
      (cpu ? lacking_devices : lacking_both) += c.weight * all;
    }
  }
  return lacking_both + lacking_devices + lacking_cpu + cpu_only + cpu_only_lacking + wrong_model;
}

}  // namespace neap::simulate
