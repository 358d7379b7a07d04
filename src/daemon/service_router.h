// Keeps the gateway in step with the state: a replica gets requests from the moment it is
// healthy, leaves before it is stopped, and its load comes back as events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/view.h"
#include "config/pool_file.h"
#include "core/model/state.h"
#include "daemon/books.h"
#include "daemon/engine_release.h"
#include "daemon/engine_watch.h"
#include "gateway/gateway.h"

namespace neap::daemon {

class ServiceRouter {
 public:
  struct Ports {
    std::function<void(Event)> post;                                   // into the loop
    std::function<std::optional<std::int32_t>(AllocationId)> port_of;  // of a replica
    std::function<void(const Action&)> carry_out;                      // to the backend
  };

  ServiceRouter(gateway::Gateway& gateway, Ports ports, config::GatewaySettings settings = {});
  ~ServiceRouter();

  // At the start, with all replicas adopted: names everything that should be there.
  void restore(const PoolState& state);
  // Keys and certificate as their files are now; at the start, and once a second. A file that
  // cannot be used changes nothing, and is told of once.
  void refresh_front();
  // Each record once it is durable.
  void note(const PoolState& state, const Record& record);
  // Leaves the gateway first, then passes the action on. True if it took the action over.
  bool stop_replica(const StopTask& action);

  [[nodiscard]] std::string address_of(const std::string& service) const;  // "" when unknown
  [[nodiscard]] bool serves_any() const;
  [[nodiscard]] std::string trouble() const;  // what the proxy suffers from, "" when well
  void set_trouble(std::string detail);

  [[nodiscard]] std::vector<EngineWatch::Replica> replicas() const;
  // What the proxy suffers from, and services that burn what their SLO allows.
  [[nodiscard]] std::vector<api::Condition> conditions() const;
  // Waits for the gateway, 5 s at most.
  [[nodiscard]] Result<gateway::ServiceLatency> latency_of(const std::string& service);

  // Asks the gateway for the load of each service once a second, from its own thread.
  void start_sampling();
  void stop_sampling();

 private:
  struct Routed {
    std::string service;
    std::uint16_t port = 0;
    Micros drain{0};
    engine::Kind engine = engine::Kind::none;
  };

  void ensure(const ServiceState& service);
  void add(const PoolState& state, const TaskState& task);
  void sample_all();
  void note_burn(const std::string& service, const measure::BurnReport& burn);
  [[nodiscard]] std::optional<std::int64_t> ended_since(const std::string& service,
                                                        std::uint64_t requests);

  gateway::Gateway& gateway_;
  Ports ports_;
  config::GatewaySettings settings_;
  std::string front_seen_;  // of the files, when they were last handed on; sampler's thread alone
  mutable std::mutex mutex_;
  std::string front_trouble_;                      // guarded by mutex_: keys that cannot be read
  std::map<std::string, std::uint16_t> services_;  // guarded by mutex_: name -> port
  std::map<AllocationId, Routed> replicas_;        // guarded by mutex_
  std::map<std::string, std::uint64_t> requests_;  // guarded by mutex_: ended so far, by service
  std::map<std::string, std::string> burning_;     // guarded by mutex_: what is said of it
  std::string trouble_;                            // guarded by mutex_
  EngineRelease release_;                          // ends before the rest
  std::jthread sampler_;
};

// The port where a service takes requests, from its launch text; 0 when it names none.
[[nodiscard]] std::uint16_t service_port(const std::string& launch);

}  // namespace neap::daemon
