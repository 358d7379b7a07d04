// The tiers of a pool that a workload's jobs and services go to.
#pragma once

#include <string>

#include "core/model/result.h"
#include "core/model/spec.h"

namespace neap::whatif {

struct Tiers {
  std::string job;
  std::string deadline;   // of jobs with one
  std::string inference;  // empty where the pool has none

  // A tier of the pool that carries training; `otherwise` where there is none of that name.
  [[nodiscard]] std::string training_or(const PoolSpec& pool, const std::string& name) const;
  [[nodiscard]] std::string inference_or(const PoolSpec& pool, const std::string& name) const;
};

// `job` is a tier that all jobs shall have; empty: the pool's lightest batch tier, and the one
// with "deadline" in its name for jobs with a deadline.
[[nodiscard]] Result<Tiers> tiers_for(const PoolSpec& pool, const std::string& job);

}  // namespace neap::whatif
