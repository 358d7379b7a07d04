// The port to the proxy in front of services: who is a member, and what the requests were.
//
// Every call returns at once; its result comes by callback on the gateway's own thread, which the
// callback must not block. All calls are idempotent: carrying one out twice equals once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "measure/latency_book.h"
#include "measure/windows.h"

namespace neap::gateway {

// Where clients reach a service.
struct Endpoint {
  std::string service;             // 1 to 63 of a-z, 0-9, '-' and '.'
  std::string bind = "127.0.0.1";  // a numeric address; loopback unless the operator says so
  std::uint16_t port = 0;
  Micros slo_first_byte{0};            // 0: every good response is in time
  Micros queue_timeout = seconds(60);  // a request that waited this long for a replica fails
  bool operator==(const Endpoint&) const = default;
};

// One running replica, on the loopback interface.
struct Replica {
  std::string service;
  AllocationId allocation;
  std::uint16_t port = 0;
  std::int32_t max_concurrency = 1;  // requests sent to it at once; the others queue
  bool operator==(const Replica&) const = default;
};

struct ReplicaRef {
  std::string service;
  AllocationId allocation;
};

struct ServiceSample {
  std::int32_t ready_replicas = 0;
  std::int64_t in_flight = 0;  // being served
  std::int64_t queued = 0;     // waiting for a replica
  // Finished requests since the oldest record that is kept: lost none.
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;  // of these: status 5xx, or cut off
  // p95 of the time to the first byte, queue included, of what was answered in the last 30 s.
  std::optional<Micros> first_byte_p95;
  measure::BurnReport burn;  // looked at every 10 s
  Time at;
};

// What the requests of a service were, from the proxy's records: each exactly once, over restarts
// of the daemon too.
struct ServiceLatency {
  std::vector<measure::SeriesReport> series;  // of the whole first; empty: none were seen
  measure::BurnReport burn;
  measure::Objective objective;
  std::uint64_t requests = 0;  // since the oldest record that is kept
  Time at;
};

struct Drained {
  std::int64_t still_in_flight = 0;  // 0 unless the time ran out
};

// Requests of one replica that ended within one slice of 10 s (aligned to the epoch). Requests
// that reached no replica come with allocation none. Of one slice several parts may come.
struct RequestSlice {
  std::string service;
  AllocationId allocation;
  Time start;
  measure::RequestTotals totals;
};

// What the gateway tells without being asked; on its own thread.
struct Observer {
  std::function<void(const RequestSlice&)> requests;
  // The proxy died or was restarted; empty detail: all is well again.
  std::function<void(std::string detail)> trouble;
};

class Gateway {
 public:
  using Done = std::function<void(Result<void>)>;
  using DrainDone = std::function<void(Result<Drained>)>;
  using SampleDone = std::function<void(Result<ServiceSample>)>;
  using LatencyDone = std::function<void(Result<ServiceLatency>)>;

  Gateway() = default;
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  virtual ~Gateway() = default;

  // Done once clients can connect. A changed endpoint keeps its replicas.
  virtual void ensure_service(Endpoint endpoint, Done done) = 0;
  // Streams that have begun go on to their end.
  virtual void remove_service(std::string service, Done done) = 0;

  // Done once requests can reach it; also takes back a drain.
  virtual void add_replica(Replica replica, Done done) = 0;
  // No new request from now on; done when none is in flight, or after `within`.
  virtual void drain_replica(ReplicaRef replica, Micros within, DrainDone done) = 0;
  // As drain_replica, then cuts what is left and forgets the replica.
  virtual void remove_replica(ReplicaRef replica, Micros within, Done done) = 0;

  virtual void sample(std::string service, SampleDone done) = 0;
  virtual void latency(std::string service, LatencyDone done) = 0;

  // After a restart of the daemon: whatever ran before and was not named since by ensure_service
  // and add_replica is removed.
  virtual void forget_unclaimed(Done done) = 0;

  // Ends the proxy itself. Without it the proxy outlives this object, to be adopted by the next.
  virtual void stop(Done done) = 0;
};

}  // namespace neap::gateway
