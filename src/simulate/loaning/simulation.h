// A compact event simulation of training jobs beside one service on shared devices, for the
// policies that neap is compared with. neap itself runs through its own engine
// (simulate/run/loaning).
#pragma once

#include <cstdint>

#include "simulate/loaning/policy.h"
#include "simulate/loaning/score.h"
#include "simulate/loaning/workload.h"

namespace neap::loaning {

inline constexpr std::int64_t load_s = 45;       // of a replica
inline constexpr std::int64_t drain_s = 30;      // of a replica
inline constexpr std::int64_t kill_s = 5;        // until a killed job's devices are free
inline constexpr std::int64_t on_demand_s = 20;  // until those of a job that saves are
inline constexpr std::size_t backfill_depth = 400;

[[nodiscard]] Outcome simulate(const Workload& workload, const Policy& policy,
                               std::int32_t devices);

}  // namespace neap::loaning
