// Arrivals of traces as what the pool is told: jobs with a contract and a tier, services that are
// submitted when their first load comes, requests counted to loads.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "simulate/run/incoming.h"
#include "simulate/run/source.h"
#include "simulate/run/tiers.h"
#include "simulate/run/workload.h"

namespace neap::whatif {

class ConvertedStream : public IncomingStream {
 public:
  ConvertedStream(std::unique_ptr<ArrivalStream> arrivals, const WorkloadOptions& options,
                  Tiers tiers);
  [[nodiscard]] Result<bool> next(Incoming& into) override;
  [[nodiscard]] std::optional<std::int64_t> total() const override { return arrivals_->total(); }
  [[nodiscard]] std::int64_t passed_over() const override {
    return arrivals_->passed_over() + passed_over_;
  }

 private:
  void take(trace::Arrival arrival);
  void close_windows(Time until);
  void add_job(Time at, const trace::JobArrival& job);
  void add_rate(Time at, const std::string& service, std::int64_t micro_per_second);

  std::unique_ptr<ArrivalStream> arrivals_;
  const WorkloadOptions options_;
  Tiers tiers_;
  std::deque<Incoming> ready_;
  // Requests of the window that is open, and the services that have had any load. Sorted, so that
  // windows close in one order.
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::int64_t> services_;
  Time window_end_ = Time::never();
  std::int64_t passed_over_ = 0;
  bool ended_ = false;
};

}  // namespace neap::whatif
