#include "daemon/service_ports.h"

#include <set>
#include <string>

#include "core/model/pool_index.h"
#include "daemon/service_router.h"
#include "gateway/haproxy/port_check.h"

namespace neap::daemon {

namespace {

constexpr const char* address = "127.0.0.1";
constexpr std::int32_t first_unprivileged_port = 1024;

std::set<std::int32_t> ports_in_use(const PoolState& state) {
  std::set<std::int32_t> ports;
  for (const ServiceState& service : state.services) {
    if (service.removed && service.replicas.empty()) continue;
    ports.insert(service_port(service.spec.launch));
  }
  for (const PipelineState& pipeline : state.pipelines) {
    for (const StageState& stage : pipeline.stages) {
      if (stage.deploys && !has_ended(stage.phase))
        ports.insert(service_port(stage.deploys->launch));
    }
  }
  return ports;
}

}  // namespace

Result<void> ServicePorts::assign(const PoolState& state, config::TaskFile& file) {
  auto* spec = std::get_if<ServiceSpec>(&file.spec);
  if (spec == nullptr) return {};
  if (const auto live = find_live_service(state, spec->name)) {
    // A second service of the name is refused for it; a new version is reached where the old one
    // is.
    const std::int32_t port = service_port(state.service(*live).spec.launch);
    if (file.launch.port != 0 && file.launch.port != port) {
      return fail(ErrorCode::conflict,
                  spec->name + " is reached at port " + std::to_string(port) +
                      "; a new version of it stays there",
                  "port");
    }
    file.launch.port = port;
    spec->launch = config::to_json(file.launch);
    return {};
  }
  const std::set<std::int32_t> taken = ports_in_use(state);
  if (const auto wanted = file.launch.port; wanted != 0) {
    if (wanted < first_unprivileged_port && spec->owner.uid != 0) {
      return fail(ErrorCode::permission_denied, "ports below 1024 are for root alone", "port");
    }
    if (taken.contains(wanted)) {
      return fail(ErrorCode::conflict,
                  "port " + std::to_string(wanted) + " belongs to another service", "port");
    }
    auto free = gateway::check_port_free(address, static_cast<std::uint16_t>(wanted));
    if (free) return {};
    return fail(ErrorCode::conflict, free.error().message, "port");
  }
  for (int tried = 0; tried <= last_port - first_port; ++tried) {
    const std::uint16_t port = next_;
    next_ = next_ == last_port ? first_port : static_cast<std::uint16_t>(next_ + 1);
    if (taken.contains(port) || !gateway::check_port_free(address, port)) continue;
    file.launch.port = port;
    spec->launch = config::to_json(file.launch);
    return {};
  }
  return fail(ErrorCode::exhausted, "no port from 18000 to 19999 is free", "port");
}

}  // namespace neap::daemon
