// One what-if run: the daemon's own engine on simulated machines in virtual time, without faults.
// From event to event, so that a quiet month costs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/engine.h"
#include "core/model/result.h"
#include "core/model/units.h"
#include "simulate/run/cluster.h"
#include "simulate/run/outcome.h"
#include "simulate/run/policy.h"
#include "simulate/run/workload.h"

namespace neap::whatif {

struct RunSpec {
  ClusterSpec cluster;
  PolicySpec policy;
  WorkloadOptions workload;
  std::optional<Micros> until;  // ends so long after the first arrival
  // Whether placement learns from the demand, as it does beside the daemon's loop. Here it takes
  // no time at all.
  enum class Learning : std::uint8_t { as_daemon, none } learning = Learning::as_daemon;
};

struct Progress {
  Time now;  // since midnight before the first arrival
  std::int64_t arrived = 0;
  std::int64_t ended = 0;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::optional<std::int64_t> total;  // jobs, where known
};

struct Hooks {
  std::function<void(const Progress&)> progress;  // now and then
  // After each step: facts that somebody who looks at the state has to add. They are applied at
  // the same moment.
  std::function<std::vector<Event>(const PoolState&, const StepResult&)> learn;
  // Every event with what followed it, as the daemon's journal would have it.
  std::function<void(Time, const Event&, const StepResult&)> record;
};

[[nodiscard]] Result<Outcome> run_once(const RunSpec& spec, const Hooks& hooks);

}  // namespace neap::whatif
