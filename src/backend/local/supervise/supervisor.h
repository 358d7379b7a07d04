// One task from its start to the acknowledgement of its end. Everything that the daemon must
// know is a report in the spool; the daemon may be there or not.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/local/cgroup.h"
#include "backend/local/control.h"
#include "backend/local/event_loop.h"
#include "backend/local/health_probe.h"
#include "backend/local/report.h"
#include "backend/local/spec.h"
#include "backend/local/spool.h"
#include "backend/local/supervise/contract_server.h"
#include "backend/local/supervise/control_server.h"
#include "backend/local/supervise/task_child.h"
#include "backend/local/supervise/watcher.h"
#include "backend/local/task_log.h"
#include "core/model/result.h"

namespace neap::local {

class Supervisor {
 public:
  // Opens sockets and spool. `signals` is a signalfd of SIGCHLD, SIGTERM and SIGINT.
  [[nodiscard]] static Result<std::unique_ptr<Supervisor>> open(std::string directory,
                                                                SupervisedTask task, Fd signals);
  // Starts the task and returns when its end is acknowledged, or nobody asks for it in time.
  void run();

 private:
  // forked -> running -> killing (the main process ended) -> settling (last look at its files)
  // -> ended
  enum class Phase { forked, running, killing, settling, ended };

  Supervisor(std::string directory, SupervisedTask task, Spool spool, Fd signals);

  void start_task();
  [[nodiscard]] Result<void> check_limits();
  void start_failed(const std::string& reason);
  void on_exec_result();
  void on_output();
  void on_signal();
  void reap();
  void main_process_ended(int status);
  void check_emptied();
  void settle();
  void finish();
  void leave_later();

  void on_message(const ContractMessage& message);
  void on_message(const HelloMessage& hello);
  void on_message(const StepMessage& step);
  void on_message(const CheckpointMessage& checkpoint);
  void on_message(const YieldingMessage& yielding);
  void on_watched(const WatchedCheckpoint& found);
  void on_health(HealthProbe::Verdict verdict, const std::string& reason);
  void flush_steps();

  void on_command(const ControlCommand& command);
  void ask_yield(const RequestYield& request);
  void terminate(const Terminate& request);
  void signal_group(int number) const;
  void kill_all();

  void report(ReportBody body);
  void sync_and_publish();

  std::string directory_;
  SupervisedTask task_;
  EventLoop loop_;
  Spool spool_;
  Fd signals_;
  TaskLog log_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<ContractServer> contract_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<HealthProbe> probe_;
  std::optional<Cgroup> group_;
  std::vector<std::string> not_enforced_;
  TaskChild child_;
  std::string failure_;  // what the child said before exec
  Phase phase_ = Phase::forked;
  Exited exit_;
  bool ready_ = false;
  bool yield_at_boundary_ = false;  // SIGTERM after the next watched checkpoint
  Steps steps_;
  std::optional<EventLoop::TimerId> steps_timer_;
  std::optional<EventLoop::TimerId> kill_timer_;
  std::optional<EventLoop::TimerId> retry_timer_;
  std::optional<EventLoop::TimerId> settle_timer_;
  std::optional<HelloMessage> last_hello_;
  std::optional<CheckpointMessage> last_checkpoint_;
};

}  // namespace neap::local
