// The port to the proxy in front of services: who is a member, and what the requests were.
//
// Every call returns at once; its result comes by callback on the gateway's own thread, which the
// callback must not block. All calls are idempotent: carrying one out twice equals once.
#pragma once

#include <array>
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

// Of a request, by its header `x-priority` or its key; in the order in which they are served.
enum class RequestClass : std::uint8_t { high, normal, low };
inline constexpr std::size_t class_count = 3;

// How requests wait for a replica, and which are refused (POLICIES 6).
struct Admission {
  RequestClass usual = RequestClass::normal;  // of a request that says nothing
  // With so many waiting a newcomer of the class is refused; does not rise from class to class.
  std::array<std::int32_t, class_count> queue{256, 192, 128};
  // A request waits at most for slo_first_byte less what a replica needs; else for queue_timeout.
  bool within_slo = false;
  std::int32_t hold = 0;  // requests that wait while no replica is ready; 0: they are answered 503
  Micros hold_for = seconds(60);
  // Places of a replica follow its latency, from `least` to the replica's max_concurrency; else all
  // of those are used from the start.
  bool adaptive = false;
  std::int32_t least = 1;
  // Cost of a request: so much a token in, by its size, and a token out, by `max_tokens` and what
  // is usual. Both 0: every request costs the same.
  std::int32_t input_cost = 0;
  std::int32_t output_cost = 0;
  std::int64_t output_tokens = 256;  // of an answer, until the usual is known
  bool operator==(const Admission&) const = default;
};

// Where clients reach a service.
struct Endpoint {
  std::string service;             // 1 to 63 of a-z, 0-9, '-' and '.'
  std::string bind = "127.0.0.1";  // a numeric address; loopback unless the operator says so
  std::uint16_t port = 0;
  Micros slo_first_byte{0};            // 0: every good response is in time
  Micros queue_timeout = seconds(60);  // a request that waited this long for a replica is refused
  Admission admission;
  // What it is asked for as at the shared endpoint, the usual name first; empty: the service's
  // name.
  std::vector<std::string> models;
  bool operator==(const Endpoint&) const = default;
};

// A team's key, as its digest.
struct TeamKey {
  std::string digest;  // SHA-256, 64 of 0-9a-f
  std::string team;
  RequestClass highest = RequestClass::high;  // that its requests may have, and have by themselves
  bool operator==(const TeamKey&) const = default;
};

// What all services have in common, and the endpoint where clients name a model instead of a port.
struct Front {
  // off: everyone may ask. optional: a key that is presented has to be known. required: 401 else.
  enum class Keys : std::uint8_t { off, optional, required };
  std::string bind = "127.0.0.1";
  std::uint16_t port = 0;           // of the shared endpoint; 0: there is none
  std::string certificate;          // PEM file, chain and key; empty: endpoints are in clear text
  std::string certificate_version;  // differs when the file changed
  Keys keys = Keys::off;
  std::vector<TeamKey> known;
  bool operator==(const Front&) const = default;
};

// One running replica, on the loopback interface.
struct Replica {
  std::string service;
  AllocationId allocation;
  std::uint16_t port = 0;
  std::int32_t max_concurrency = 1;  // requests sent to it at once, at most; the others queue
  bool operator==(const Replica&) const = default;
};

struct ReplicaRef {
  std::string service;
  AllocationId allocation;
};

struct ServiceSample {
  std::int32_t ready_replicas = 0;
  std::int64_t in_flight = 0;                        // being served
  std::int64_t queued = 0;                           // waiting for a replica
  std::array<std::uint64_t, class_count> refused{};  // for want of a place, since the proxy's load
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

  // Takes effect with the first service, or at once where there is one.
  virtual void set_front(Front front, Done done) = 0;

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
