// Limits of the host in task and pool files. They are no matter of the core: both become JSON for
// the local backend, which describes the keys (backend/local/host_limits.h).
#pragma once

#include <string>
#include <string_view>

#include "config/fields.h"

namespace neap::config {

struct PoolHost {
  bool verify = true;         // try each method before it is offered
  std::string policy = "{}";  // JSON
};

// The section `host:` of a task or service; empty when it says nothing. Relative paths are below
// `workdir`.
[[nodiscard]] std::string read_task_host(Fields fields, std::string_view workdir);
void read_pool_host(Fields fields, PoolHost& into);

}  // namespace neap::config
