// Which services and replicas the proxy serves: the wish, and the steps that bring the proxy to
// it. One thread; all calls may take as long as the proxy takes to answer (a reload: 0.2 s).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "gateway/gateway.h"
#include "gateway/haproxy/config.h"
#include "gateway/haproxy/process.h"

namespace neap::gateway {

class Membership {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  Membership(ProxyProcess& process, ConfigPaths paths);

  // Takes over a proxy that runs in this folder, with what it serves.
  void adopt();
  // Starts the proxy with everything that is wished for. Does nothing without a service.
  [[nodiscard]] Result<void> start();

  [[nodiscard]] Result<void> ensure_service(const Endpoint& endpoint);
  [[nodiscard]] Result<void> remove_service(const std::string& service);
  void add_replica(const Replica& replica, Gateway::Done done);
  void drain_replica(const ReplicaRef& ref, Instant deadline, Gateway::DrainDone done);
  void remove_replica(const ReplicaRef& ref, Instant deadline, Gateway::Done done);
  void forget_unclaimed(Instant deadline);
  [[nodiscard]] Result<ServiceSample> sample(const std::string& service);

  // Goes on with drains and removals; to be called every few ms while any are pending.
  void advance(Instant now);
  [[nodiscard]] bool pending() const;

  // None when there is no such service.
  [[nodiscard]] const Endpoint* endpoint_of(const std::string& service) const;
  [[nodiscard]] bool wanted() const { return !services_.empty(); }

 private:
  enum class Phase : std::uint8_t { serving, draining, leaving };
  enum class Origin : std::uint8_t { asked_for, found };

  struct Member {
    Replica replica;
    Phase phase = Phase::serving;
    Origin origin = Origin::asked_for;
    bool in_proxy = false;  // the current worker knows it
    bool cut = false;       // its last requests were cut off
    Instant deadline;
    std::vector<Gateway::Done> added;
    std::vector<Gateway::DrainDone> drained;
    std::vector<Gateway::Done> removed;
  };

  struct Service {
    Endpoint endpoint;
    Origin origin = Origin::asked_for;
    std::map<AllocationId, Member> members;
  };

  // In flight by backend and server, over the current worker and those that end after a reload.
  struct Load {
    std::map<std::string, std::map<std::string, std::int64_t>> in_flight;
    std::map<std::string, std::int64_t> queued;
    std::map<std::string, std::int32_t> ready;

    void add(const ProxyStatistics& statistics);
  };

  [[nodiscard]] Result<void> take_over();
  [[nodiscard]] Result<void> apply_configuration();
  [[nodiscard]] std::string render() const;
  void loaded();
  [[nodiscard]] Result<void> command(const std::string& line) const;
  [[nodiscard]] Result<void> put_in_proxy(Member& member) const;
  [[nodiscard]] Result<Load> measure();
  [[nodiscard]] Member* find(const ReplicaRef& ref);
  // True when nothing is left to be done for the member.
  [[nodiscard]] bool advance_member(Member& member, std::int64_t in_flight, Instant now);
  [[nodiscard]] Result<void> check_free(const Endpoint& endpoint) const;

  ProxyProcess& process_;
  ConfigPaths paths_;
  std::map<std::string, Service> services_;
  std::vector<pid_t> old_workers_;
  bool other_preamble_ = false;  // the adopted proxy was configured by another version
};

}  // namespace neap::gateway
