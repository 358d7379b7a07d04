// For each node, a lower bound on the cost of freeing k devices there for a demand of each tier,
// kept in tournament trees, so that the search for victims looks at few nodes. Derived from the
// state; brought up to date from a list of touched nodes when it is asked.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/units.h"

namespace neap {

struct PoolState;

class VictimBounds {
 public:
  // Something about the tenants or devices of this node changed. Cheap: noted only.
  void touch(NodeId node);
  void touch_all() { all_touched_ = true; }

 private:
  std::vector<NodeId> touched_;
  std::vector<bool> is_touched_;
  bool all_touched_ = true;
};

}  // namespace neap
