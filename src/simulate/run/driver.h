// The loop of a what-if run. run.h is the way in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backend/simulated/machines.h"
#include "backend/simulated/simulated_backend.h"
#include "backend/simulated/timeline.h"
#include "core/engine.h"
#include "ledger/ledger.h"
#include "simulate/run/incoming.h"
#include "simulate/run/run.h"
#include "simulate/run/tally.h"

namespace neap::whatif {

class Driver {
 public:
  Driver(const RunSpec& spec, const Hooks& hooks, std::unique_ptr<IncomingStream> workload,
         Incoming first);
  [[nodiscard]] Result<Outcome> run();

 private:
  struct Load {
    ServiceId id;
    std::int64_t in_use_milli = 0;
    std::int32_t concurrency = 1;
  };

  Result<void> open_pool();
  Result<void> go_on();
  // The moment of what comes next, or never.
  [[nodiscard]] Time next_moment() const;
  [[nodiscard]] bool is_over() const;
  Result<void> fire_timer();
  Result<void> take_next();
  Result<void> fetch();

  Result<void> take(JobIncoming job);
  Result<void> take(ServiceIncoming service);
  Result<void> take(const LoadIncoming& load);
  Result<void> take(const ServiceLeaving& service);
  void sample_loads();
  void report_requests(const Load& load, Micros since);
  [[nodiscard]] std::string launch_of(const TaskSpec& spec, Micros duration) const;

  Result<void> ask(const Event& event);  // refused as the daemon would
  void apply(const Event& event);
  void learn_placement();
  void show_progress();
  [[nodiscard]] Outcome finish();

  const RunSpec& spec_;
  const Hooks& hooks_;
  std::unique_ptr<IncomingStream> workload_;
  std::optional<Incoming> ahead_;
  Time base_;  // midnight before the first arrival, in the engine's time
  Time begin_, last_arrival_;
  Time end_at_ = Time::never();
  bool cut_off_ = false;

  simulated::Timeline timeline_;
  simulated::Machines machines_;
  simulated::SimulatedBackend backend_;
  PoolState state_;
  ledger::Ledger ledger_;
  Tally tally_;
  StepResult result_;

  std::map<std::string, Load> loads_;
  Time sample_at_ = Time::never();
  std::int64_t samples_ = 0;
  std::int64_t job_number_ = 0;
  std::int64_t learned_at_ = 0;  // demand seen when the last lesson was taken
  std::int64_t timers_at_once_ = 0;
  std::int64_t happenings_ = 0;
};

}  // namespace neap::whatif
