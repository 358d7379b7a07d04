#include "simulate/run/loaning/stream.h"

#include <string>
#include <utility>

namespace neap::whatif {

namespace {

constexpr const char* service_name = "chat";
constexpr std::int64_t minute_s = 60;

}  // namespace

LoaningStream::LoaningStream(const loaning::Workload& workload, Tiers tiers, const EngineRun& run)
    : workload_(workload),
      tiers_(std::move(tiers)),
      saves_(run.saves),
      begun_(run.service == EngineRun::Service::none),
      minute_(run.service == EngineRun::Service::none ? workload.demand_milli.size() : 0) {}

Result<bool> LoaningStream::next(Incoming& into) {
  if (!std::exchange(begun_, true)) {
    into = service();
    return true;
  }
  const bool more_load = minute_ < workload_.demand_milli.size();
  const bool more_jobs = job_ < workload_.jobs.size();
  if (!more_load && !more_jobs) return false;
  const std::int64_t minute_at_s = static_cast<std::int64_t>(minute_) * minute_s;
  if (more_load && (!more_jobs || minute_at_s <= workload_.jobs[job_].arrival_s)) {
    into = {Time(0) + seconds(minute_at_s),
            LoadIncoming{service_name, workload_.demand_milli[minute_]}};
    ++minute_;
    return true;
  }
  into = job(job_++);
  return true;
}

Incoming LoaningStream::service() const {
  ServiceSpec spec;
  spec.name = service_name;
  spec.team = service_name;
  spec.tier = tiers_.inference;
  spec.min_replicas = 1;
  spec.max_replicas = workload_.peak();
  spec.concurrency = static_cast<std::int32_t>(loaning::demand_unit);
  return {Time(0), ServiceIncoming{std::move(spec)}};
}

// Recorded durations have the stalls of checkpoints already.
Incoming LoaningStream::job(std::size_t index) const {
  const loaning::Job& job = workload_.jobs[index];
  JobIncoming incoming;
  TaskSpec& spec = incoming.spec;
  spec.name = "job-" + std::to_string(index);
  spec.team = "training";
  spec.tier = tiers_.job;
  spec.request.count = job.devices;
  spec.contract.sdk = saves_ == EngineRun::Saves::at_boundaries;
  spec.contract.signals = !spec.contract.sdk;
  spec.contract.on_demand = true;
  spec.contract.interval = seconds(loaning::interval_s);
  spec.contract.stall = Micros(0);
  spec.contract.restore = seconds(job.restore_s);
  spec.work = seconds(job.estimate_s);
  incoming.duration = seconds(job.duration_s);
  return {Time(0) + seconds(job.arrival_s), std::move(incoming)};
}

}  // namespace neap::whatif
