#include "config/launch.h"

#include <nlohmann/json.hpp>

namespace neap::config {

std::string to_json(const Launch& launch) {
  nlohmann::ordered_json out;
  out["command"] = launch.command;
  out["workdir"] = launch.workdir;
  out["env"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : launch.env) out["env"][name] = value;
  if (launch.cpu_milli > 0) out["cpu_milli"] = launch.cpu_milli;
  if (launch.host_memory.value > 0) out["host_memory_mib"] = launch.host_memory.value;
  if (!launch.host.empty()) out["host"] = nlohmann::ordered_json::parse(launch.host);
  if (!launch.watch.empty()) out["watch"] = launch.watch;
  if (launch.health) {
    out["health"] = {{"path", launch.health->path},
                     {"interval_us", launch.health->interval.value},
                     {"timeout_us", launch.health->timeout.value}};
    out["concurrency"] = launch.concurrency;
  }
  if (!launch.gateway.empty()) {
    out["gateway"] = nlohmann::ordered_json::parse(launch.gateway, nullptr, false);
  }
  if (launch.port > 0) out["port"] = launch.port;
  if (!launch.model_dir.empty()) out["model_dir"] = launch.model_dir;
  if (!launch.engine.empty()) out["engine"] = launch.engine;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace neap::config
