// neap ladder and neap baseline.
#pragma once

#include <string>

#include "cli/context.h"
#include "cli/load.h"
#include "cli/verbs.h"

namespace neap::cli {

int ladder(const Context& context, const NamedOptions& options);

struct BaselineOptions {
  std::string name;
  double rate = 5;             // requests a second, of a service
  std::string length = "20s";  // of each of the two runs
  std::string settle = "3s";   // before each
  std::int64_t max_tokens = 32;
  std::int64_t seed = 1;
  bool json = false;
};
// Measures both and stores them; what it froze runs again, whatever happens.
int baseline_run(const Context& context, const BaselineOptions& options);
int baseline_show(const Context& context, const NamedOptions& options);

// "/v1/services/NAME", or the task of that name where there is no such service.
[[nodiscard]] Result<std::string> work_path(const Context& context, const std::string& name);

}  // namespace neap::cli
