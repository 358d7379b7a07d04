// How a task's process is started: what the core never looks at and hands to the backend as JSON
// (TaskSpec::launch). The keys are a contract between this file and the backends:
//
//   {"command": ["python3", "train.py"], "workdir": "/jobs/a", "env": {"A": "b"},
//    "cpu_milli": 4000, "host_memory_mib": 16384, "host": {…} (backend/local/host_limits.h),
//    "watch": "out/checkpoint-*",
//    "health": {"path": "/health", "interval_us": 1000000, "timeout_us": 5000000},
//    "gateway": {...}, of gateway.h,
//    "port": 8100, "concurrency": 8, "model_dir": "/models/m", "engine": "vllm"}
//
// "command" and "workdir" are always there. "watch" is there with the contract of that name,
// "health" and what follows it for services. {port} in a command stands for the replica's port,
// which is in NEAP_PORT too; "port" is the service's own, where requests come in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/units.h"

namespace neap::config {

struct Health {
  std::string path = "/health";
  Micros interval = seconds(1);
  Micros timeout = seconds(5);  // of one check
};

struct Launch {
  std::vector<std::string> command;
  std::string workdir;
  std::vector<std::pair<std::string, std::string>> env;
  std::int64_t cpu_milli = 0;  // 0: no limit
  MiB host_memory{0};          // 0: no limit
  std::string host;            // limits of the host as JSON (host.h); empty: none
  std::string watch;
  std::optional<Health> health;
  std::string gateway;    // of a service: JSON
  std::int32_t port = 0;  // 0: chosen by the daemon
  std::int32_t concurrency = 0;
  std::string model_dir;
  std::string engine;  // of a service: vllm, llama_cpp, neap (engine/kind.h)
};

[[nodiscard]] std::string to_json(const Launch& launch);

}  // namespace neap::config
