// The workload of a what-if run: files or a generator, merged in the order of time, with the
// tiers of the pool and a contract for jobs that come without one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/spec.h"
#include "simulate/run/incoming.h"
#include "simulate/run/source.h"

namespace neap::whatif {

// What recorded traces do not tell of a service.
struct ReplicaOptions {
  std::string service = "chat";          // whose load requests without a name are
  std::int32_t gpus = 1;                 // whole devices of one replica
  std::int64_t rate_micro = 10'000'000;  // requests a second that one serves, in millionths
  std::int32_t min = 1;
  std::int32_t max = 0;      // 0: as many as there are devices for
  Micros load = minutes(1);  // between samples of the load
  Micros start = seconds(
      23);  // from its start to its first answer; the median of model loads on a public pool
  Micros drain = seconds(10);
};

struct WorkloadOptions {
  std::vector<std::string> files;
  Format format = Format::automatic;
  std::optional<Generated> generated;
  ContractSpec contract;  // of jobs from traces; an interval of 0 is the pool's
  enum class Work : std::uint8_t { unknown, declared } work = Work::unknown;
  std::string tier;  // of jobs; empty: the lightest batch tier, or that with "deadline" in its name
  ReplicaOptions replica;
  Ppm jitter{0};        // durations are drawn from 1 - jitter .. 1 + jitter of the recorded one
  Ppm sample{all_ppm};  // part of the jobs that is taken, drawn job by job
  std::uint64_t seed = 1;
};

// Whether two seeds make two workloads.
[[nodiscard]] bool depends_on_seed(const WorkloadOptions& options);

// Refuses what cannot be opened, unknown tiers, and workloads without a single arrival.
[[nodiscard]] Result<std::unique_ptr<IncomingStream>> open_workload(const WorkloadOptions& options,
                                                                    const PoolSpec& pool);

}  // namespace neap::whatif
