#include "simulate/run/policy.h"

#include <utility>

#include "config/pool_file.h"
#include "config/problem.h"
#include "config/text.h"

namespace neap::whatif {

Result<PolicySpec> load_policy(const std::string& path, const std::vector<std::string>& sets,
                               std::int64_t devices) {
  std::vector<config::Override> overrides;
  if (devices > 0) overrides.push_back({"pool.total_gpus", std::to_string(devices), "--cluster"});
  PolicySpec policy;
  policy.name = path.empty() ? "defaults" : path;
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::invalid_argument, "expected key=value", "--set " + set);
    }
    overrides.push_back({set.substr(0, equals), set.substr(equals + 1), "--set " + set});
    policy.name += " " + set;
  }
  std::string text = "pool: {}\n";
  if (!path.empty()) {
    auto read = config::read_file(path);
    if (!read) return tl::unexpected(read.error());
    text = std::move(*read);
  }
  config::Problems problems(policy.name);
  if (!path.empty()) problems = config::Problems(path);
  auto file = config::parse_pool_file(text, overrides, problems);
  if (!file) return tl::unexpected(problems.to_error());
  policy.pool = std::move(file->spec);
  policy.nodes = std::move(file->nodes);
  return policy;
}

}  // namespace neap::whatif
