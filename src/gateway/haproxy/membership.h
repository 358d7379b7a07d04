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
#include "gateway/haproxy/admission_script.h"
#include "gateway/haproxy/config.h"
#include "gateway/haproxy/process.h"

namespace neap::gateway {

// What the proxy tells of a service, for whoever drives its admission.
struct MemberView {
  AllocationId allocation;
  std::int32_t most = 1;   // requests at once that it was declared for
  std::int32_t limit = 1;  // that it is given now
  std::int64_t in_flight = 0;
  bool serving = false;
  bool taken_over = false;  // by this daemon, from one before
};
struct ServiceView {
  Endpoint endpoint;
  std::int64_t queued = 0;  // in HAProxy's own queue
  AdmissionCounts counts;   // of the script
  std::vector<MemberView> members;
};

class Membership {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  Membership(ProxyProcess& process, ConfigPaths paths);

  // Takes over a proxy that runs in this folder, with what it serves.
  void adopt();
  // Starts the proxy with everything that is wished for. Does nothing without a service.
  [[nodiscard]] Result<void> start();

  // One that cannot be had leaves what runs as it is, and is retried: no service is ever served
  // with less than was asked for.
  [[nodiscard]] Result<void> set_front(const Front& front);
  // Goes on with what could not be applied.
  void retry();
  // Whether there is anything to retry, and why; empty: all is as it was asked for.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] Result<void> ensure_service(const Endpoint& endpoint);
  [[nodiscard]] Result<void> remove_service(const std::string& service);
  void add_replica(const Replica& replica, Gateway::Done done);
  void drain_replica(const ReplicaRef& ref, Instant deadline, Gateway::DrainDone done);
  void remove_replica(const ReplicaRef& ref, Instant deadline, Gateway::Done done);
  void forget_unclaimed(Instant deadline);
  [[nodiscard]] Result<ServiceSample> sample(const std::string& service);

  // All services; `unavailable` while the proxy is down.
  [[nodiscard]] Result<std::vector<ServiceView>> look();
  // No news to the proxy where nothing changes.
  void set_limit(const ReplicaRef& ref, std::int32_t limit);
  void set_figures(const std::string& service, const AdmissionFigures& figures);

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
    std::int32_t limit = 0;  // requests at once for now; 0: as many as the replica may have
    bool taken_over = false;
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
    std::map<std::string, AdmissionCounts> counts;

    void add(const std::map<std::string, AdmissionCounts>& more);
    void add(const ProxyStatistics& statistics);
  };

  [[nodiscard]] Result<void> take_over();
  [[nodiscard]] Result<void> apply_configuration();
  [[nodiscard]] Result<std::string> render() const;
  [[nodiscard]] static Replica as_limited(const Member& member);
  void loaded();
  [[nodiscard]] Result<void> command(const std::string& line) const;
  [[nodiscard]] Result<void> put_in_proxy(Member& member) const;
  [[nodiscard]] Result<Load> measure();
  [[nodiscard]] Member* find(const ReplicaRef& ref);
  // True when nothing is left to be done for the member.
  [[nodiscard]] bool advance_member(Member& member, std::int64_t in_flight, Instant now);
  [[nodiscard]] Result<void> apply();
  [[nodiscard]] std::string loaded_config() const;
  [[nodiscard]] Result<void> check_shared_port() const;
  [[nodiscard]] bool front_at_fault();
  [[nodiscard]] Result<void> check_free(const Endpoint& endpoint) const;

  ProxyProcess& process_;
  ConfigPaths paths_;
  Front front_;                     // as asked for
  bool front_known_ = false;        // it was asked for at all
  std::optional<Error> refused_;    // why what was asked for last is not taken
  std::optional<Error> barred_;     // why nothing may be loaded for now
  std::optional<Error> unapplied_;  // why what runs is not what is wished for
  std::optional<Error> unshared_;   // why the shared endpoint is left out
  std::map<std::string, Service> services_;
  std::vector<pid_t> old_workers_;
  std::map<std::string, AdmissionFigures> figures_;
  bool other_preamble_ = false;  // the adopted proxy was configured by another version
};

}  // namespace neap::gateway
