// A daemon of three tasks, one service and one device that remembers what it was asked.
//
//   1 mine    uid of the test, running, logs "line 1\nline 2\n"
//   2 theirs  uid 4242, waiting behind mine
//   3 done    uid of the test, finished with 7
//   1 chat    service of the test; 2 other, of uid 4242
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "api/control.h"

namespace neap::api::testing {

class FakeControl final : public Control {
 public:
  FakeControl();

  Result<Subject> find_task(std::string_view name_or_id) override;
  Result<Subject> find_service(std::string_view name_or_id) override;
  Result<Subject> find_pipeline(std::string_view name_or_id) override;
  Result<Subject> submit(const Caller& caller, config::TaskFile file) override;
  Result<Subject> replace(const Caller& caller, config::TaskFile file) override;
  Result<Subject> submit_pipeline(const Caller& caller, config::PipelineFile file) override;
  Result<void> cancel_pipeline(const Caller& caller, std::uint64_t id) override;
  Result<void> cancel_task(const Caller& caller, std::uint64_t id) override;
  Result<void> cancel_service(const Caller& caller, std::uint64_t id) override;
  Result<void> cancel_version(const Caller& caller, std::uint64_t id) override;
  Result<void> scale_service(const Caller& caller, std::uint64_t id, Scale scale) override;
  Result<void> pause(const Caller& caller, std::string_view reason) override;
  Result<void> resume(const Caller& caller) override;
  Result<void> change_stage(const Caller& caller, const StageChange& change) override;
  Result<PoolStatus> status() override;
  Result<PoolDetail> describe_pool() override;
  Result<ProfileListing> profiles() override;
  Result<ReviewReport> review(std::int64_t from_us) override;
  Result<TaskListing> list_tasks() override;
  Result<ServiceListing> list_services() override;
  Result<DeviceListing> list_devices() override;
  Result<PipelineListing> list_pipelines() override;
  Result<PipelineDetail> describe_pipeline(std::uint64_t id) override;
  Result<TaskDetail> describe_task(std::uint64_t id) override;
  Result<ServiceDetail> describe_service(std::uint64_t id) override;
  Result<WhyReport> why(std::uint64_t id) override;
  Result<ForecastReport> forecast() override;
  Result<TeamListing> list_teams() override;
  Result<LatencyReport> latency(std::uint64_t service) override;
  Result<ContentionReport> contention(WorkKind kind, std::uint64_t id) override;
  Result<BaselineReport> baseline(WorkKind kind, std::uint64_t id) override;
  Result<void> measure_baseline(WorkKind kind, std::uint64_t id,
                                const BaselineOrder& order) override;
  Result<LogChunk> read_log(std::uint64_t id, LogRange range) override;
  Result<std::vector<EventRow>> events_after(std::uint64_t after, std::int64_t limit) override;
  Result<UsageReport> usage() override;
  Result<ledger::PreemptionReport> preemptions(std::int64_t window_us) override;
  Result<void> start_drill(const Caller& caller, const DrillOrder& order) override;
  Result<void> stop_drill(const Caller& caller) override;
  Result<DrillReport> drill() override;
  Result<VersionInfo> version() override;
  Result<std::vector<DoctorCheck>> doctor() override;

  // "cancel 1 by 1000", in order.
  [[nodiscard]] std::vector<std::string> asked() const;
  void set_state(std::uint64_t task, const std::string& state, std::int64_t exit_code);
  void append_log(std::uint64_t task, std::string_view text);
  void add_event(EventRow event);
  [[nodiscard]] std::string submitted() const;  // the launch JSON of the newest submission

 private:
  struct Task {
    TaskRow row;
    std::string log;
  };
  Task* task(std::uint64_t id);
  void note(const std::string& text, const Caller& caller);
  [[nodiscard]] PoolStatus pool() const;

  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::vector<ServiceRow> services_;
  std::vector<PipelineRow> pipelines_;
  std::vector<EventRow> events_;
  std::vector<std::string> asked_;
  std::string paused_by_;
  std::string launch_;
};

}  // namespace neap::api::testing
