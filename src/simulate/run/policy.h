// The pool file of a what-if run, with keys changed on the way.
#pragma once

#include <cstdint>
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
// docs/operators/configuration.md. `devices`: of a cluster that is not the file's own, in place of
// its total_gpus; 0: there is none.
[[nodiscard]] Result<PolicySpec> load_policy(const std::string& path,
                                             const std::vector<std::string>& sets,
                                             std::int64_t devices = 0);

}  // namespace neap::whatif
