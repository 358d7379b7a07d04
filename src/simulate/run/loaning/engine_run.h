// The lending experiment through the daemon's engine: the same workload and the same score as the
// reference policies (simulate/loaning) have.
#pragma once

#include <cstdint>

#include "core/model/result.h"
#include "simulate/loaning/score.h"
#include "simulate/loaning/workload.h"
#include "simulate/run/policy.h"

namespace neap::whatif {

struct EngineRun {
  PolicySpec policy;
  std::int32_t devices = 512;
  // Without a service, as the training cluster of two: to compare the engine with the simulation.
  enum class Service : std::uint8_t { shares, none } service = Service::shares;
  // How jobs save: at boundaries and on demand, or on demand alone, where nothing happens between.
  enum class Saves : std::uint8_t { at_boundaries, on_demand } saves = Saves::at_boundaries;
};

[[nodiscard]] Result<loaning::Outcome> run_loaning(const loaning::Workload& workload,
                                                   const EngineRun& run);

}  // namespace neap::whatif
