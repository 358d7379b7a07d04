// Watches what is fought over between services and training on this machine (F2), keeps the ladder
// of each service (B7), and measures baselines. One thread: every 5 s it reads the kernel's
// counters and the latencies, diagnoses, and in mode `auto` changes limits while the tasks run.
// Moves are kept in <state_dir>/ladder.log, a JSON object a line, bounded; baselines in
// <state_dir>/baselines.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/contention.h"
#include "backend/local/host_signals.h"
#include "backend/local/rung_limits.h"
#include "config/pool_file.h"
#include "core/model/events.h"
#include "core/model/result.h"
#include "measure/diagnosis.h"
#include "measure/ladder.h"

namespace neap::local {
class LocalBackend;
}

namespace neap::daemon {

class EngineWatch;
class Loop;
class ServiceRouter;

// A service with its replicas, or a training task.
struct Workload {
  api::WorkKind kind{};
  std::string name;
  std::vector<AllocationId> allocations;
  Micros first_byte_slo{0};
};

// A rung is judged by figures of the time after it alone: once it has had `settle`, whole windows
// of requests or of steps have to pass.
[[nodiscard]] measure::LadderOptions ladder_options(const config::LadderSettings& settings,
                                                    api::WorkKind kind);

class ContentionWatch {
 public:
  struct Ports {
    std::function<std::vector<Workload>()> workloads;  // that run now
    std::function<std::vector<local::TaskGroup>()> groups;
    std::function<Result<local::CgroupLimits>(AllocationId)> limits_of;
    std::function<Result<void>(AllocationId, const local::CgroupLimits&)> change;
    // Of a service's requests in the window that just ended; unknown where nothing tells.
    std::function<void(const std::string& service, measure::Speed&)> speed_of;
    std::function<void(const std::string& line)> say;  // into the daemon's log
    std::function<Time()> now;
  };

  ContentionWatch(Ports ports, config::LadderSettings settings, std::string state_dir);
  ~ContentionWatch() { stop(); }

  // With mode off: nothing, but to undo what an earlier daemon has left.
  void start();
  void stop();  // thaws whom a baseline has frozen
  // One round; called by the thread.
  void look();
  // Every report of the backend, from any thread; of interest are those of steps.
  void note(const Event& report);

  void fill(api::WorkKind kind, const std::string& name, api::ContentionReport& into) const;
  [[nodiscard]] Result<void> order(api::WorkKind kind, const std::string& name,
                                   const api::BaselineOrder& order);
  [[nodiscard]] Result<void> baseline(api::WorkKind kind, const std::string& name,
                                      api::BaselineReport& into) const;

 private:
  using Key = std::pair<api::WorkKind, std::string>;
  struct Watched {
    Workload workload;
    std::int64_t windows = 0;
    measure::Signals signals;
    measure::Diagnosis newest;
    measure::SteadyDiagnosis steady;
    measure::Ladder ladder;
    std::optional<measure::LadderMove> advised;
    std::deque<api::LadderMoveRow> moves;
    std::optional<std::int64_t> steps_before;        // of training, before the first rung
    std::map<AllocationId, std::int64_t> io_before;  // bytes/s of neighbours, likewise
  };
  struct StepBatch {
    Time at;
    std::int64_t count = 0;
    Micros busy{0};
  };
  struct Measuring {  // a baseline under way
    Key key;
    api::BaselineOrder::Phase phase = api::BaselineOrder::Phase::alone;
    Time since, until;
    local::HostReading begun;
    std::vector<local::TaskGroup> frozen;
    api::BaselineReport report;
  };

  void read_signals(Watched& one, const std::vector<Workload>& all, const local::HostReading& now,
                    const measure::Speed& speed) const;
  void climb(Watched& one, const std::vector<Workload>& all, Time now);
  [[nodiscard]] Result<void> carry_out(Watched& one, const measure::LadderMove& move,
                                       const std::vector<Workload>& all);
  [[nodiscard]] Result<void> limit(AllocationId allocation, const local::RungFacts& facts,
                                   api::WorkKind side);
  void keep(Watched& one, const measure::LadderMove& move, const std::string& fault, Time now);
  void share(const std::vector<local::TaskGroup>& groups);
  void recover(const std::vector<local::TaskGroup>& groups);
  [[nodiscard]] std::string lease_path() const;
  [[nodiscard]] std::string usual_path(AllocationId allocation) const;
  [[nodiscard]] std::optional<Micros> step_of(const Workload& workload, Time since) const;
  [[nodiscard]] std::optional<std::int64_t> steps_rate(const Workload& workload, Time now) const;
  [[nodiscard]] std::optional<std::int64_t> training_rate(const std::vector<Workload>& all,
                                                          Time now) const;
  [[nodiscard]] std::string baseline_path(const Key& key) const;
  void load_baseline(const Key& key);
  [[nodiscard]] Result<void> begin_alone(const Key& key, Micros length);
  [[nodiscard]] Result<void> begin_mixed(const measure::Speed& speed);
  [[nodiscard]] Result<void> store(const api::BaselineOrder& order, const measure::Speed& speed);
  void thaw();
  void measured(measure::Speed seen, api::SpeedRow& speed, api::UseRow& use) const;

  Ports ports_;
  config::LadderSettings settings_;
  std::string state_dir_;
  mutable std::mutex mutex_;
  std::map<Key, Watched> watched_;                      // guarded by mutex_, as all below
  std::map<Key, std::optional<measure::Alone>> alone_;  // none: looked for, and not there
  std::vector<Workload> workloads_;                     // at the last look
  std::map<AllocationId, std::deque<StepBatch>> steps_;
  std::map<AllocationId, local::CgroupLimits> usual_;  // limits without the ladder
  std::map<AllocationId, bool> shared_;                // true: in the CPU group of all
  std::optional<local::HostReading> before_;
  std::optional<local::HostReading> newest_;
  std::optional<Measuring> measuring_;
  std::optional<std::set<AllocationId>> owed_;  // whom an earlier daemon has left frozen
  int recoveries_ = 0;
  bool recovered_ = false;
  std::jthread thread_;
};

// All but `now`, of the parts of the daemon, which live longer than the watch.
[[nodiscard]] ContentionWatch::Ports contention_ports(Loop& loop, local::LocalBackend& backend,
                                                      const EngineWatch& engines,
                                                      ServiceRouter& router);

}  // namespace neap::daemon
