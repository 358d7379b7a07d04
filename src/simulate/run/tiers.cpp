#include "simulate/run/tiers.h"

#include <algorithm>

#include "config/problem.h"

namespace neap::whatif {

namespace {

const TierSpec* find(const PoolSpec& pool, const std::string& name) {
  const auto found = std::find_if(pool.tiers.begin(), pool.tiers.end(),
                                  [&](const TierSpec& tier) { return tier.name == name; });
  return found == pool.tiers.end() ? nullptr : &*found;
}

}  // namespace

std::string Tiers::training_or(const PoolSpec& pool, const std::string& name) const {
  const TierSpec* tier = find(pool, name);
  return tier != nullptr && tier->purpose != Purpose::inference ? name : job;
}

std::string Tiers::inference_or(const PoolSpec& pool, const std::string& name) const {
  const TierSpec* tier = find(pool, name);
  return tier != nullptr && tier->purpose == Purpose::inference ? name : inference;
}

Result<Tiers> tiers_for(const PoolSpec& pool, const std::string& job) {
  Tiers tiers;
  for (const TierSpec& tier : pool.tiers) {  // the lightest come last
    if (tier.purpose == Purpose::inference) tiers.inference = tier.name;
    if (tier.purpose == Purpose::interactive && tiers.job.empty()) tiers.job = tier.name;
    if (tier.purpose == Purpose::batch) tiers.job = tier.name;
  }
  if (!job.empty()) {
    const TierSpec* tier = find(pool, job);
    if (tier == nullptr || tier->purpose == Purpose::inference) {
      return fail(ErrorCode::invalid_argument,
                  config::in_quotes(job) + " is no training tier of the pool file", "--tier");
    }
    tiers.job = tiers.deadline = job;
    return tiers;
  }
  if (tiers.job.empty()) {
    return fail(ErrorCode::invalid_argument, "names no tier for training", "priority_tiers");
  }
  tiers.deadline = tiers.job;
  for (const TierSpec& tier : pool.tiers) {
    if (tier.purpose == Purpose::batch && tier.name.find("deadline") != std::string::npos) {
      tiers.deadline = tier.name;
    }
  }
  return tiers;
}

}  // namespace neap::whatif
