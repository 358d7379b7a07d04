// Drives admission once a second: from the records of what was answered and the proxy's own
// counts it computes how fast each service is, how long a request may wait, and how many requests
// each replica is given at once.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "gateway/concurrency.h"
#include "gateway/haproxy/membership.h"
#include "gateway/haproxy/records.h"
#include "gateway/service_rate.h"
#include "measure/windows.h"

namespace neap::gateway {

class AdmissionDriver {
 public:
  explicit AdmissionDriver(Membership& members) : members_(members) {}

  // Every request that ended, in the order of the log.
  void note(const RequestRecord& record, Time now);
  // Once a second.
  void tick(Time now);

 private:
  struct ReplicaState {
    std::optional<ConcurrencyControl> control;
    measure::Histogram first_bytes;  // from dispatch, since the last look
    Time looked;
  };
  struct ServiceState {
    ServiceState();
    ServiceRate rate;
    measure::SlidingHistogram busy;         // time for which a request takes a place
    measure::SlidingHistogram first_bytes;  // from dispatch
    AdmissionCounts counts;                 // at the last look
    bool queue_seen = false;                // somebody had to wait since the look before
    double mean_cost = 1;
    std::map<AllocationId, ReplicaState> replicas;
  };

  void look_at(const ServiceView& view, ServiceState& service, Time now);
  static ConcurrencyEvidence evidence_of(const MemberView& member, const ServiceState& service,
                                         const ReplicaState& replica, Time now);
  void look_at_replica(const ServiceView& view, const MemberView& member, ServiceState& service,
                       Time now);
  [[nodiscard]] static AdmissionFigures figures_of(const Endpoint& endpoint,
                                                   const ServiceState& service, Time now);

  Membership& members_;
  std::map<std::string, ServiceState> services_;
};

}  // namespace neap::gateway
