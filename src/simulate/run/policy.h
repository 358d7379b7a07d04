// The pool file of a what-if run, with keys changed on the way.
#pragma once

#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/spec.h"

namespace neap::whatif {

struct PolicySpec {
  std::string name;  // for people: the file, and what was changed
  PoolSpec pool;
  std::vector<NodeSpec> nodes;  // those the file names
};

// The file of defaults is the empty name. `sets` are "key=value" with the keys of
// docs/operators/configuration.md.
[[nodiscard]] Result<PolicySpec> load_policy(const std::string& path,
                                             const std::vector<std::string>& sets);

}  // namespace neap::whatif
