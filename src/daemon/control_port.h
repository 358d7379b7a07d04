// Answers the API's calls on the loop's thread: each waits for its turn and, when it changes
// something, for the record to be durable.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "api/control.h"
#include "daemon/loop.h"
#include "daemon/service_ports.h"
#include "daemon/views.h"
#include "simulate/forecast/forecast.h"

namespace neap::daemon {

class ContentionWatch;

class ControlPort final : public api::Control {
 public:
  struct Outside {  // what is not in the state
    std::string journal_path;
    std::string artifacts;  // the folder of all artefacts
    // A part of a task's log: by its newest allocation.
    std::function<Result<api::LogChunk>(AllocationId, api::LogRange)> read_log;
    std::function<std::string(const std::string& service)> address_of;  // "" when nothing listens
    std::function<std::int64_t(AllocationId)> port_of;                  // of a replica
    // What the proxy and the engines know of a service's requests; may wait, not on the loop.
    std::function<Result<void>(const std::string& service, api::LatencyReport& into)> latency;
    // Of an allocation that runs: `enforced` and `not_enforced`.
    std::function<void(AllocationId, Purpose, api::HostLimitsView& into)> host_limits;
    ContentionWatch* contention = nullptr;  // lives longer than the port
    std::function<std::vector<api::DoctorCheck>()> doctor;
    // A fresh one, or nothing.
    std::function<std::shared_ptr<const forecast::Forecast>()> starts;
  };

  ControlPort(Loop& loop, ViewContext context, Outside outside, Loop::Clock clock);

  Result<api::Subject> find_task(std::string_view name_or_id) override;
  Result<api::Subject> find_service(std::string_view name_or_id) override;
  Result<api::Subject> find_pipeline(std::string_view name_or_id) override;
  Result<api::Subject> submit(const api::Caller& caller, config::TaskFile file) override;
  Result<api::Subject> replace(const api::Caller& caller, config::TaskFile file) override;
  Result<api::Subject> submit_pipeline(const api::Caller& caller,
                                       config::PipelineFile file) override;
  Result<void> cancel_pipeline(const api::Caller& caller, std::uint64_t id) override;
  Result<void> cancel_task(const api::Caller& caller, std::uint64_t id) override;
  Result<void> cancel_service(const api::Caller& caller, std::uint64_t id) override;
  Result<void> cancel_version(const api::Caller& caller, std::uint64_t id) override;
  Result<void> scale_service(const api::Caller& caller, std::uint64_t id,
                             api::Scale scale) override;
  Result<void> pause(const api::Caller& caller, std::string_view reason) override;
  Result<void> resume(const api::Caller& caller) override;
  Result<void> change_stage(const api::Caller& caller, const api::StageChange& change) override;
  Result<api::PoolStatus> status() override;
  Result<api::PoolDetail> describe_pool() override;
  Result<api::ProfileListing> profiles() override;
  Result<api::ReviewReport> review(std::int64_t from_us) override;
  Result<api::TaskListing> list_tasks() override;
  Result<api::ServiceListing> list_services() override;
  Result<api::DeviceListing> list_devices() override;
  Result<api::PipelineListing> list_pipelines() override;
  Result<api::PipelineDetail> describe_pipeline(std::uint64_t id) override;
  Result<api::TaskDetail> describe_task(std::uint64_t id) override;
  Result<api::ServiceDetail> describe_service(std::uint64_t id) override;
  Result<api::WhyReport> why(std::uint64_t id) override;
  Result<api::ForecastReport> forecast() override;
  Result<api::TeamListing> list_teams() override;
  Result<api::LatencyReport> latency(std::uint64_t service) override;
  Result<api::ContentionReport> contention(api::WorkKind kind, std::uint64_t id) override;
  Result<api::BaselineReport> baseline(api::WorkKind kind, std::uint64_t id) override;
  Result<void> measure_baseline(api::WorkKind kind, std::uint64_t id,
                                const api::BaselineOrder& order) override;
  Result<api::LogChunk> read_log(std::uint64_t id, api::LogRange range) override;
  Result<std::vector<api::EventRow>> events_after(std::uint64_t after, std::int64_t limit) override;
  Result<api::UsageReport> usage() override;
  Result<ledger::PreemptionReport> preemptions(std::int64_t window_us) override;
  Result<void> start_drill(const api::Caller& caller, const api::DrillOrder& order) override;
  Result<void> stop_drill(const api::Caller& caller) override;
  Result<api::DrillReport> drill() override;
  Result<api::VersionInfo> version() override;
  Result<std::vector<api::DoctorCheck>> doctor() override;

 private:
  template <class T>
  Result<T> ask(std::function<Result<T>(const PoolState&, const Books&)> question);
  Result<Loop::Outcome> tell(Event event);

  Loop& loop_;
  ViewContext context_;
  Outside outside_;
  Loop::Clock clock_;
  ServicePorts service_ports_;
  std::mutex claiming_;  // from looking at the models and names of others to having one's own
};

}  // namespace neap::daemon
