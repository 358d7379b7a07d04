#include "simulate/leftover/neap_policy.h"

#include <algorithm>

namespace neap::simulate {

namespace {

constexpr std::int64_t refreshes = 200;  // while as much arrives as the cluster holds

}  // namespace

LeftoverGrader::LeftoverGrader(const LeftoverTable& table, Situation situation,
                               const Workload& workload, const Cluster& cluster)
    : course_(situation.course),
      scores_(table, course_, workload.kinds(), workload.models.size(), situation.outlook),
      known_(cluster.nodes()),
      capacity_(cluster.capacity()),
      arrived_(situation.arrived) {
  for (const Node& node : known_) {
    scores_.count(node, 1);
    potential_.push_back(scores_.potential_of(node));
  }
  if (course_ == Course::lasting) scores_.begin_lasting();
  refresh_when_due();
}

std::optional<Grade> LeftoverGrader::grade(const Node& node, std::uint32_t index,
                                           ShapeRef shape) const {
  if (!node.fits(shape.demand)) return {};
  return scores_.grade(node, potential_[index], shape.demand);
}

void LeftoverGrader::changed(const Node& node, std::uint32_t index) {
  scores_.count(known_[index], -1);
  scores_.count(node, 1);
  known_[index] = node;
  potential_[index] = scores_.potential_of(node);
}

void LeftoverGrader::arrived(std::int64_t milli) {
  arrived_ += milli;
  refresh_when_due();
}

void LeftoverGrader::refresh_when_due() {
  const std::int64_t now = arrived_ * refreshes / capacity_;
  if (now == refreshed_) return;
  refreshed_ = now;
  if (course_ == Course::lasting) {
    scores_.refresh_lasting();
  } else {
    scores_.refresh(std::max<std::int64_t>(0, capacity_ - arrived_));
  }
}

}  // namespace neap::simulate
