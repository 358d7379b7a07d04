// From the core's StartTask to what a supervisor needs: command, environment, limits, identity.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backend/local/block_device.h"
#include "backend/local/host_limits.h"
#include "backend/local/spec.h"
#include "core/model/events.h"
#include "core/model/result.h"

namespace neap::local {

struct PlanSettings {
  std::string pool = "default";
  std::string cgroup_root = "/sys/fs/cgroup";  // empty: no control groups
  std::string artifacts = {};                  // the folder of all artefacts of pipelines
  LogLimits log;
  std::int64_t service_weight = 1000;  // CPU and I/O weight of a replica,
  std::int64_t training_weight = 100;  // and of training beside it (B5)
  HostPolicy host = {};                // what the pool gives each kind of work
  std::function<Result<std::string>(const std::string&)> disk_of = neap::local::disk_of;
};

// Makes the folder where a stage of a pipeline leaves its artefacts, for its owner alone. One that
// is there stays: the stage goes on after it yielded.
[[nodiscard]] Result<void> prepare_artifacts(const StartTask& start, const PlanSettings& settings);

// Is this a replica with a health check, which needs a port?
[[nodiscard]] Result<bool> needs_port(const StartTask& start);

// Reads the launch text (its keys are described where the task files are read). {port} in an
// argument becomes the port. Fails when the launch text is not one, or the user is not known here.
[[nodiscard]] Result<SupervisedTask> plan_start(const StartTask& start,
                                                const PlanSettings& settings,
                                                std::optional<std::int32_t> port);

}  // namespace neap::local
