// The port through which the API reaches the daemon. The daemon implements it: each call is
// put into the loop's inbox and waits for its answer, so every answer is a state between two
// events and every change is durable before the call returns.
//
// Calls come from the API's worker threads, several at a time. A call waits 5 s at most and
// then fails with `unavailable`; after the loop has stopped all calls fail so.
//
// Who may do what is decided by the API (authority.h) before a change is asked for: it resolves
// a name to a Subject, checks its owner, and then acts on the id, which never changes its owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/contention.h"
#include "api/latency.h"
#include "api/reports.h"
#include "api/view.h"
#include "core/model/result.h"

namespace neap::config {
struct PipelineFile;
struct TaskFile;
}  // namespace neap::config

namespace neap::api {

// Who asks; kept with the event that the request becomes.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int32_t pid = 0;
  std::string user;  // login name, the number when there is none, "token" over TCP
};

struct Scale {
  std::int64_t replicas_min = unknown;  // unknown leaves it as it is
  std::int64_t replicas_max = unknown;
};

struct StageChange {
  std::string to;
  std::string why;
  bool forced = false;  // though its check is not passed
};

struct LogRange {
  // From the start of the log; negative: this many bytes before its end.
  std::int64_t offset = 0;
  std::int64_t max_bytes = 64 * 1024;
};

class Control {
 public:
  virtual ~Control() = default;

  // A name means the newest task or service of that name; a number is an id.
  // not_found when there is none.
  virtual Result<Subject> find_task(std::string_view name_or_id) = 0;
  virtual Result<Subject> find_service(std::string_view name_or_id) = 0;
  virtual Result<Subject> find_pipeline(std::string_view name_or_id) = 0;

  // The file's one task or service, after config::fit_to_pool. An error's context is the field
  // that is wrong ("gpu.memory"); the API adds file and line. conflict: a live one has the name.
  virtual Result<Subject> submit(const Caller& caller, config::TaskFile file) = 0;
  // As a new version of the live service of its name; not_found where there is none. One that is
  // being loaded already is given up for it.
  virtual Result<Subject> replace(const Caller& caller, config::TaskFile file) = 0;
  // All its stages or none of them; an error's context is such as "stages[2].gpus".
  virtual Result<Subject> submit_pipeline(const Caller& caller, config::PipelineFile file) = 0;
  virtual Result<void> cancel_pipeline(const Caller& caller, std::uint64_t id) = 0;
  virtual Result<void> cancel_task(const Caller& caller, std::uint64_t id) = 0;
  // Stops all replicas and forgets the service.
  virtual Result<void> cancel_service(const Caller& caller, std::uint64_t id) = 0;
  // Gives up the version that is being loaded; conflict: none is.
  virtual Result<void> cancel_version(const Caller& caller, std::uint64_t id) = 0;
  virtual Result<void> scale_service(const Caller& caller, std::uint64_t id, Scale scale) = 0;
  // Pausing a paused pool, and resuming a running one, succeeds and changes nothing.
  virtual Result<void> pause(const Caller& caller, std::string_view reason) = 0;
  virtual Result<void> resume(const Caller& caller) = 0;

  // The next stage of adoption, or one back. conflict: the check is not passed, and not forced.
  virtual Result<void> change_stage(const Caller& caller, const StageChange& change) = 0;

  virtual Result<PoolStatus> status() = 0;
  virtual Result<PoolDetail> describe_pool() = 0;
  virtual Result<ProfileListing> profiles() = 0;
  // Of the seven days from this moment; unknown: the last ones.
  virtual Result<ReviewReport> review(std::int64_t from_us) = 0;
  // All that live and the newest that ended (bounded by the journal's retention).
  virtual Result<TaskListing> list_tasks() = 0;
  virtual Result<ServiceListing> list_services() = 0;
  virtual Result<DeviceListing> list_devices() = 0;
  // All that live and the newest that ended.
  virtual Result<PipelineListing> list_pipelines() = 0;
  virtual Result<PipelineDetail> describe_pipeline(std::uint64_t id) = 0;
  virtual Result<TaskDetail> describe_task(std::uint64_t id) = 0;
  virtual Result<ServiceDetail> describe_service(std::uint64_t id) = 0;
  virtual Result<LatencyReport> latency(std::uint64_t service) = 0;
  // What is fought over beside it; ids are those of its kind.
  virtual Result<ContentionReport> contention(WorkKind kind, std::uint64_t id) = 0;
  // not_found: none was measured.
  virtual Result<BaselineReport> baseline(WorkKind kind, std::uint64_t id) = 0;
  virtual Result<void> measure_baseline(WorkKind kind, std::uint64_t id,
                                        const BaselineOrder& order) = 0;
  virtual Result<WhyReport> why(std::uint64_t id) = 0;
  virtual Result<ForecastReport> forecast() = 0;
  virtual Result<TeamListing> list_teams() = 0;

  virtual Result<LogChunk> read_log(std::uint64_t id, LogRange range) = 0;
  // Events with a sequence above `after`, oldest first, `limit` at most. The live ones are
  // pushed by the daemon into the EventHub (event_hub.h); this reads what came before.
  virtual Result<std::vector<EventRow>> events_after(std::uint64_t after, std::int64_t limit) = 0;

  virtual Result<UsageReport> usage() = 0;
  // Of what was asked in the last `window_us`.
  virtual Result<ledger::PreemptionReport> preemptions(std::int64_t window_us) = 0;
  virtual Result<void> start_drill(const Caller& caller, const DrillOrder& order) = 0;
  virtual Result<void> stop_drill(const Caller& caller) = 0;
  virtual Result<DrillReport> drill() = 0;
  virtual Result<VersionInfo> version() = 0;
  virtual Result<std::vector<DoctorCheck>> doctor() = 0;
};

}  // namespace neap::api
