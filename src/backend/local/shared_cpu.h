// Tasks in one CPU group, as on a machine without isolation, and back. With cgroup v1 alone: there
// each controller has groups of its own, so that tasks still end and freeze one by one.
#pragma once

#include "backend/local/cgroup.h"
#include "core/model/result.h"

namespace neap::local {

// Its processes move to the group above, which all tasks of the pool share; their children follow.
[[nodiscard]] Result<void> share_cpu(const Cgroup& group);
// And back into its own.
[[nodiscard]] Result<void> separate_cpu(const Cgroup& group);

}  // namespace neap::local
