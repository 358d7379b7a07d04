#include "backend/local/supervise/supervisor.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "backend/local/clock.h"
#include "backend/local/durable_file.h"
#include "backend/local/json.h"
#include "backend/local/processes.h"
#include "backend/local/traffic.h"

namespace neap::local {
namespace {

constexpr Micros kill_again = milliseconds(50);
constexpr Micros sync_again = seconds(1);
constexpr Micros settle_longest = minutes(2);
constexpr std::size_t unsynced_limit = 1024 * 1024;  // in memory, while the disk is full
constexpr std::int32_t yielded_code = 75;

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::open(std::string directory, SupervisedTask task,
                                                     Fd signals) {
  auto spool = Spool::create(directory);
  if (!spool) return tl::unexpected(spool.error());
  std::unique_ptr<Supervisor> self(
      new Supervisor(std::move(directory), std::move(task), std::move(*spool), std::move(signals)));
  const std::string greeting = JsonObject()
                                   .add("supervisor", std::int64_t{::getpid()})
                                   .add("epoch", static_cast<std::int64_t>(self->task_.epoch))
                                   .line();
  auto control = ControlServer::open(
      self->loop_, control_path(self->directory_), self->spool_, greeting + "\n",
      [raw = self.get()](const ControlCommand& command) { raw->on_command(command); });
  if (!control) return tl::unexpected(control.error());
  self->control_ = std::move(*control);
  return self;
}

Supervisor::Supervisor(std::string directory, SupervisedTask task, Spool spool, Fd signals)
    : directory_(std::move(directory)),
      task_(std::move(task)),
      spool_(std::move(spool)),
      signals_(std::move(signals)),
      log_(directory_, task_.log) {
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal(); });
}

void Supervisor::run() {
  start_task();
  sync_and_publish();
  while (!loop_.stopped()) {
    loop_.run_once();
    sync_and_publish();
  }
}

void Supervisor::report(ReportBody body) {
  spool_.append({task_.allocation, task_.epoch, 0, wall_now(), std::move(body)});
}

// One fdatasync for all that a round of the loop brought, and only then is anybody told.
void Supervisor::sync_and_publish() {
  if (spool_.dirty()) {
    if (!spool_.sync()) {
      if (!retry_timer_) {
        retry_timer_ = loop_.after(sync_again, [this] { retry_timer_.reset(); });
      }
      return;
    }
    control_->publish();
  }
  if (phase_ == Phase::ended && spool_.acknowledged() == spool_.last_durable()) loop_.stop();
}

// ---- start -----------------------------------------------------------------------------------

void Supervisor::start_task() {
  auto contract =
      ContractServer::open(loop_, contract_path(directory_), {task_.uid, task_.gid},
                           {[this](const ContractMessage& message) { on_message(message); },
                            [this](std::int64_t line, const std::string& reason) {
                              report(ContractFault{line, reason});
                            },
                            [this] { return spool_.unsynced_bytes() < unsynced_limit; }});
  if (!contract) return start_failed(contract.error().message);
  contract_ = std::move(*contract);
  if (!task_.watch.empty()) {
    auto watcher = Watcher::start(loop_, task_,
                                  {[this](const WatchedCheckpoint& found) { on_watched(found); },
                                   [this](const std::string& reason) {
                                     report(ContractFault{0, reason});
                                   },
                                   [this] {
                                     if (phase_ == Phase::settling) finish();
                                   }});
    if (!watcher) return start_failed(watcher.error().message);
    watcher_ = std::move(*watcher);
  }
  // Whatever the task leaves behind becomes a child of this process: none can get away.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return start_failed(system_error("prctl", "subreaper").message);
  }
  if (task_.cgroup) {
    const CgroupRoot root = detect_cgroups(task_.cgroup->root);
    auto created = Cgroup::create(root, task_.cgroup->name, task_.cgroup->limits);
    not_enforced_ = std::move(created.not_enforced);
    if (!created.group.empty_handed()) group_ = std::move(created.group);
    if (auto limited = check_limits(); !limited) return start_failed(limited.error().message);
  }
  auto child = fork_task(task_, contract_path(directory_), group_ ? &*group_ : nullptr);
  if (!child) return start_failed(child.error().message);
  child_ = std::move(*child);
  const std::string started = JsonObject()
                                  .add("pid", std::int64_t{child_.pid})
                                  .add("start_ticks", static_cast<std::int64_t>(child_.start_ticks))
                                  .line();
  // From here on this allocation is never started again, whatever happens to this process.
  if (auto kept = write_durably(started_path(directory_), started + "\n", 0600); !kept) {
    child_.gate.reset();
    (void)::waitpid(child_.pid, nullptr, 0);  // it ends at the closed gate
    return start_failed(kept.error().message);
  }
  loop_.watch(child_.output.get(), EPOLLIN, [this](std::uint32_t) { on_output(); });
  loop_.watch(child_.failure.get(), EPOLLIN, [this](std::uint32_t) { on_exec_result(); });
  child_.release();
}

// What it asked for is held to it, or it does not start: never less than it was promised (B1).
Result<void> Supervisor::check_limits() {
  const SupervisedGroup& spec = *task_.cgroup;
  if (spec.traffic_class != 0) {
    const std::string place = group_ ? group_->unified_directory() : std::string();
    auto marked = classify_traffic(place, spec.traffic_class);
    if (!marked) not_enforced_.push_back("network: " + marked.error().message);
  }
  for (const std::string& lacking : not_enforced_) {
    for (const std::string& name : spec.required) {
      if (lacking.starts_with(name + ":")) {
        return fail(ErrorCode::unavailable, "host limit '" + name + "' does not hold: " + lacking);
      }
    }
  }
  return {};
}

void Supervisor::on_exec_result() {
  char text[512];
  const ssize_t n = ::read(child_.failure.get(), text, sizeof text);
  if (n < 0) return;
  if (n > 0) {
    failure_.append(text, static_cast<std::size_t>(n));
    return;
  }
  loop_.forget(child_.failure.get());
  child_.failure.reset();
  if (!failure_.empty() || phase_ != Phase::forked) return;  // reap() tells of the failure
  phase_ = Phase::running;
  report(Started{child_.pid, not_enforced_});
  if (task_.service) {
    probe_ = std::make_unique<HealthProbe>(
        loop_, *task_.service, [this](HealthProbe::Verdict verdict, const std::string& reason) {
          on_health(verdict, reason);
        });
  }
}

void Supervisor::start_failed(const std::string& reason) {
  if (group_) group_->remove();
  contract_.reset();
  watcher_.reset();
  report(StartFailed{reason});
  phase_ = Phase::ended;
  leave_later();
}

// Its last report waits for the daemon for a while, then in the spool alone.
void Supervisor::leave_later() {
  loop_.after(task_.linger, [this] {
    if (spool_.dirty()) return leave_later();
    loop_.stop();
  });
}

// ---- end -------------------------------------------------------------------------------------

void Supervisor::on_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    // Asked to go, by a machine that shuts down: the task goes first, in order if it can.
    if (info.ssi_signo != SIGCHLD) terminate({wall_now() + seconds(30)});
  }
  reap();
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == child_.pid) main_process_ended(status);
  }
  if (phase_ == Phase::killing) check_emptied();
}

void Supervisor::main_process_ended(int status) {
  if (phase_ != Phase::forked && phase_ != Phase::running) return;
  if (child_.failure.valid()) on_exec_result();
  exit_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  exit_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_.ended = wall_now();
  if (phase_ == Phase::forked) {
    if (failure_.empty()) failure_ = "its process ended before the program was started";
    on_output();
    return start_failed(failure_);
  }
  JsonObject out;
  out.add("code", exit_.code).add("signal", exit_.signal).add("ended_us", exit_.ended.us);
  // Kept apart from the report, which waits until the rest of the task is gone.
  (void)write_durably(exit_path(directory_), out.line() + "\n", 0600);
  probe_.reset();
  phase_ = Phase::killing;
  kill_all();
}

void Supervisor::check_emptied() {
  // As the subreaper this process has every survivor as a descendant: without a child there is
  // none. Group members that came from elsewhere count too.
  siginfo_t info{};
  const bool childless =
      ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  if (childless && (!group_ || group_->processes().empty())) return settle();
  if (kill_timer_) return;
  kill_timer_ = loop_.after(kill_again, [this] {
    kill_timer_.reset();
    kill_all();
    reap();
  });
}

void Supervisor::settle() {
  if (kill_timer_) loop_.cancel(*kill_timer_);
  on_output();
  phase_ = Phase::settling;
  const bool in_order = exit_.signal == 0 && (exit_.code == 0 || exit_.code == yielded_code);
  // After a crash the newest file may be half written: then only what had settled counts.
  if (!watcher_ || !in_order) return finish();
  settle_timer_ = loop_.after(settle_longest, [this] { finish(); });
  watcher_->finish();
}

void Supervisor::finish() {
  if (phase_ == Phase::ended) return;
  phase_ = Phase::ended;
  if (settle_timer_) loop_.cancel(*settle_timer_);
  contract_->drain();
  flush_steps();
  exit_.contract_faults = contract_->faults();
  if (group_) {
    exit_.oom_kills = group_->oom_kills();
    group_->remove();
  }
  if (exit_.signal == SIGKILL && exit_.oom_kills > 0) exit_.detail = "out of memory";
  if (log_.lost_bytes() > 0) {
    exit_.detail += (exit_.detail.empty() ? "" : "; ") + std::to_string(log_.lost_bytes()) +
                    " bytes of its output were lost";
  }
  report(exit_);
  leave_later();
}

void Supervisor::on_output() {
  if (!child_.output.valid()) return;
  char chunk[64 * 1024];
  for (;;) {
    const ssize_t n = ::read(child_.output.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) break;
    log_.write({chunk, static_cast<std::size_t>(n)});
    // One chunk a round while it runs, so that a chatterbox does not starve the rest.
    if (phase_ == Phase::running || phase_ == Phase::forked) return;
  }
  loop_.forget(child_.output.get());
  child_.output.reset();
}

// ---- what the task says ----------------------------------------------------------------------

void Supervisor::on_message(const ContractMessage& message) {
  std::visit([this](const auto& body) { on_message(body); }, message);
}

void Supervisor::on_message(const HelloMessage& hello) {
  // A task that reconnects, or has many processes, says the same again.
  const bool same = last_hello_ && last_hello_->version == hello.version &&
                    last_hello_->capabilities == hello.capabilities;
  if (same) return;
  last_hello_ = hello;
  report(Hello{hello.version, hello.capabilities});
}

void Supervisor::on_message(const StepMessage& step) {
  steps_.last = step.n;
  steps_.count += step.count;
  steps_.busy += step.busy;
  if (steps_timer_) return;
  // While nobody takes reports, they get coarser rather than many.
  const std::int64_t backlog = spool_.unacknowledged_bytes();
  const std::int64_t coarser = backlog > (16 << 20) ? 60 : backlog > (4 << 20) ? 6 : 1;
  steps_timer_ = loop_.after(task_.steps_every * coarser, [this] {
    steps_timer_.reset();
    flush_steps();
  });
}

void Supervisor::flush_steps() {
  if (steps_timer_) loop_.cancel(*steps_timer_);
  steps_timer_.reset();
  if (steps_.count == 0) return;
  report(steps_);
  steps_ = Steps{};
}

void Supervisor::on_message(const CheckpointMessage& checkpoint) {
  // The SDK repeats its last checkpoint when it reconnects.
  const bool same = last_checkpoint_ && last_checkpoint_->step == checkpoint.step &&
                    last_checkpoint_->path == checkpoint.path &&
                    last_checkpoint_->captured == checkpoint.captured && checkpoint.captured;
  if (same) return;
  last_checkpoint_ = checkpoint;
  flush_steps();
  const Time captured = checkpoint.captured.value_or(wall_now() - checkpoint.save);
  report(Checkpoint{checkpoint.step, checkpoint.path, checkpoint.bytes, checkpoint.save, captured,
                    checkpoint.stall});
}

void Supervisor::on_message(const YieldingMessage& yielding) {
  flush_steps();
  report(Yielding{yielding.step});
}

void Supervisor::on_watched(const WatchedCheckpoint& found) {
  flush_steps();
  report(Checkpoint{found.step, found.path, found.bytes, Micros(0), found.written, Micros(0)});
  if (yield_at_boundary_ && phase_ == Phase::running) {
    yield_at_boundary_ = false;
    signal_group(SIGTERM);
  }
}

void Supervisor::on_health(HealthProbe::Verdict verdict, const std::string& reason) {
  ready_ = verdict == HealthProbe::Verdict::ready;
  if (ready_) {
    report(Ready{});
  } else {
    report(Unready{reason});
  }
}

// ---- what the daemon says --------------------------------------------------------------------

void Supervisor::on_command(const ControlCommand& command) {
  const bool alive = phase_ == Phase::forked || phase_ == Phase::running;
  if (const auto* ack = std::get_if<Acknowledge>(&command))
    return spool_.acknowledge(ack->sequence);
  if (!alive) return;
  if (const auto* checkpoint = std::get_if<RequestCheckpoint>(&command)) {
    return contract_->request_checkpoint(checkpoint_request(checkpoint->by));
  }
  if (const auto* yield = std::get_if<RequestYield>(&command)) return ask_yield(*yield);
  if (std::holds_alternative<WithdrawYieldRequest>(command)) {
    yield_at_boundary_ = false;
    return contract_->withdraw_yield();
  }
  if (std::holds_alternative<Drain>(command)) {
    probe_.reset();
    if (ready_) report(Unready{"draining"});
    ready_ = false;
    return;
  }
  if (const auto* term = std::get_if<Terminate>(&command)) return terminate(*term);
  if (std::holds_alternative<Kill>(command)) kill_all();
}

void Supervisor::ask_yield(const RequestYield& request) {
  contract_->request_yield(yield_request(request.at, request.by));
  if (contract_->spoken_to()) return;
  if (!task_.watch.empty() && (request.at == YieldAt::boundary || !task_.signals)) {
    yield_at_boundary_ = true;
  } else if (task_.signals) {
    signal_group(SIGTERM);
  }
}

void Supervisor::terminate(const Terminate& request) {
  if (phase_ != Phase::forked && phase_ != Phase::running) return;
  signal_group(SIGTERM);
  if (request.kill_at == Time::never()) return;
  loop_.after(std::max(request.kill_at - wall_now(), Micros(0)), [this] {
    if (phase_ == Phase::running || phase_ == Phase::forked) kill_all();
  });
}

void Supervisor::signal_group(int number) const {
  if (child_.pid > 0) (void)::kill(-child_.pid, number);
}

void Supervisor::kill_all() {
  if (child_.pid <= 0) return;
  if (group_) group_->kill();
  if (phase_ == Phase::forked || phase_ == Phase::running) (void)::kill(child_.pid, SIGKILL);
  for (const pid_t pid : descendants_of(::getpid())) (void)::kill(pid, SIGKILL);
}

}  // namespace neap::local
