// What is made of the log of requests: counts and latencies of services, and slices for the
// journal, each request once over restarts of the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "gateway/gateway.h"
#include "gateway/haproxy/records.h"
#include "gateway/haproxy/spool.h"
#include "measure/latency_book.h"
#include "measure/windows.h"

namespace neap::gateway {

class RequestLog {
 public:
  // The time to the first byte that a service promises; none: there is no such service.
  using SloOf = std::function<std::optional<Micros>(const std::string& service)>;

  RequestLog(const std::string& folder, SpoolLimits limits, std::function<Time()> now,
             SloOf slo_of);
  [[nodiscard]] Result<void> open();

  // Is told of each request that ended a moment ago, as it is read; not of those of long before.
  void watch(std::function<void(const RequestRecord&)> seen) { seen_ = std::move(seen); }

  // Takes what the pipe holds; "", or what is wrong with the files: then records are counted, and
  // lost to the next daemon.
  [[nodiscard]] std::string read(int pipe_fd);

  // Slices that ended, and all; what is returned is not returned again, by the next daemon either.
  [[nodiscard]] std::vector<RequestSlice> take_closed();
  [[nodiscard]] std::vector<RequestSlice> take_all();

  // Fills in what the log knows.
  void complete(const std::string& service, ServiceSample& sample);
  [[nodiscard]] ServiceLatency latency(const std::string& service) const;

 private:
  struct Counts {
    Counts();
    std::uint64_t requests = 0;
    std::uint64_t failures = 0;
    measure::SlidingHistogram first_bytes;
    measure::BurnReport burn;
    Time burn_at{-1};
  };

  void count(std::optional<std::uint64_t> number, const RequestRecord& record);
  [[nodiscard]] measure::Objective objective_of(const std::string& service) const;
  void hand_on(Time until);

  std::string folder_;
  SpoolLimits limits_;
  std::function<Time()> now_;
  SloOf slo_of_;
  std::function<void(const RequestRecord&)> seen_;
  std::optional<RecordSpool> spool_;
  HandedOn handed_;
  LineCutter unwritten_;  // of what could not be written to the files
  RequestTally tally_;
  measure::LatencyBook book_;
  std::map<std::string, Counts> counts_;
};

}  // namespace neap::gateway
