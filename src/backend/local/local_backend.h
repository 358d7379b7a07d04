// The backend that runs tasks as processes of this machine: the core's actions become commands to
// supervisors, and their reports become events.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/local/isolation.h"
#include "backend/local/ports.h"
#include "backend/local/report.h"
#include "backend/local/start_plan.h"
#include "backend/local/supervisors.h"
#include "core/model/result.h"

namespace neap::local {

class LocalBackend final : public Backend {
 public:
  struct Settings {
    std::string run_directory;
    std::string executable;  // neap-supervise
    PlanSettings plan;
    bool verify = false;        // whether host limits hold, before the first task that asks for one
    std::string verify_folder;  // on the disk that is tried
    std::string verify_kept;    // file of earlier results
    std::size_t keep_ended = 1000;  // allocations whose files (the log) stay after their end
  };
  // Something people should read that is no fact for the core: a limit that is not enforced.
  using OnNote = std::function<void(AllocationId, const std::string&)>;

  // Attaches to what an earlier daemon left running. `sink` and `note` are called on a thread of
  // the backend, from within open() on.
  [[nodiscard]] static Result<std::unique_ptr<LocalBackend>> open(Settings settings, Sink sink,
                                                                  OnNote note);
  ~LocalBackend() override;

  void carry_out(const Action& action) override;
  void acknowledge(const ReportStamp& stamp) override;

  // The port of a replica on 127.0.0.1, from its StartTask to its end.
  [[nodiscard]] std::optional<std::int32_t> port_of(AllocationId allocation) const;
  // Where its log is (task_log.h); there until it is forgotten.
  [[nodiscard]] std::string directory_of(AllocationId allocation) const;
  // Limits of the host for each allocation; other limits while it runs.
  [[nodiscard]] Isolation& isolation() { return isolation_; }
  // Limits that the kernel refused it when it started here: "memory max: Permission denied".
  [[nodiscard]] std::vector<std::string> refused_limits_of(AllocationId allocation) const;
  // Is its supervisor's directory known here, running or ended?
  [[nodiscard]] bool knows(AllocationId allocation) const;

 private:
  LocalBackend(Settings settings, Sink sink, OnNote note);
  void remember(const std::vector<FoundAllocation>& found);
  void start(const StartTask& start);
  void refuse(const StartTask& start, const std::string& reason);
  void receive(const Report& report);
  void ended(AllocationId allocation);
  void verify();
  void remove_groups(const std::string& pools);
  [[nodiscard]] Result<void> limit(SupervisedTask& task) const;
  [[nodiscard]] bool held_back(const StartTask& start, const SupervisedTask& task);
  [[nodiscard]] bool withdraw(const Action& action);

  struct Known {
    std::optional<std::int32_t> port = {};
    std::vector<std::string> refused = {};  // limits, by the kernel, with why
  };

  Settings settings_;
  Sink sink_;
  OnNote note_;
  LoopbackPorts ports_;
  Isolation isolation_;
  mutable std::mutex mutex_;
  std::map<AllocationId, Known> known_;  // guarded by mutex_
  std::deque<AllocationId> ended_;       // guarded by mutex_; the oldest end first
  std::mutex start_mutex_;               // one start at a time; taken before mutex_
  std::vector<StartTask> waiting_;       // guarded by start_mutex_; for the checks of limits
  bool verifying_ = false;               // guarded by start_mutex_
  std::atomic<bool> closing_ = false;
  std::unique_ptr<Supervisors> supervisors_;  // last but one: its thread uses the above
  std::thread verifier_;                      // uses all of the above
};

// The event of a report; each report has one, so that sequences stay gapless.
[[nodiscard]] Event event_of(const Report& report);

}  // namespace neap::local
