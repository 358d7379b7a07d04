// Limits of the host of one task as people and programs see them: what its file asks for, what is
// in force, and what is not (B5).
#pragma once

#include <string>
#include <vector>

#include "api/view.h"
#include "backend/local/host_limits.h"
#include "backend/local/isolation.h"

namespace neap::daemon {

// Of a launch text, in the words and units of task files.
[[nodiscard]] std::vector<api::Attribute> host_limits_asked(const std::string& launch);

struct HostLimitSources {
  const local::HostLimits& usual;  // what the pool gives this kind of work
  local::CgroupLimits limits;      // of the running allocation
  local::MethodChecks checks;
  std::vector<std::string> refused;  // by the kernel: "memory max: Permission denied"
};
// Fills in `enforced` and `not_enforced`.
void view_host_limits(const HostLimitSources& sources, api::HostLimitsView& into);

}  // namespace neap::daemon
