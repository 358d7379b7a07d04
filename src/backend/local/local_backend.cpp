#include "backend/local/local_backend.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "backend/local/launcher.h"
#include "backend/local/verify.h"

namespace neap::local {
namespace {

struct EventMaker {
  ReportStamp stamp;

  Event operator()(const Started&) const { return TaskStarted{stamp}; }
  Event operator()(const Ready&) const { return ReplicaHealthy{stamp}; }
  Event operator()(const Unready& r) const { return ReplicaUnhealthy{stamp, r.reason}; }
  Event operator()(const Hello& r) const {
    const auto can = [&r](std::string_view what) {
      return std::find(r.capabilities.begin(), r.capabilities.end(), what) != r.capabilities.end();
    };
    return ContractGreeting{stamp, can("on_demand"), can("boundary")};
  }
  Event operator()(const Steps& r) const { return StepsReported{stamp, r.last, r.count, r.busy}; }
  Event operator()(const Checkpoint& r) const {
    return CheckpointDurable{stamp, r.step, r.path, r.bytes, r.captured, r.save, r.stall};
  }
  Event operator()(const Yielding& r) const { return YieldAcknowledged{stamp, r.step}; }
  Event operator()(const Exited& r) const { return TaskExited{stamp, r.code, r.signal, r.detail}; }
  Event operator()(const StartFailed& r) const { return neap::StartFailed{stamp, r.reason}; }
  Event operator()(const Lost& r) const {
    // Its exit status is not known; all of it was killed, and that is what is told.
    return TaskExited{stamp, 0, SIGKILL, "lost: " + r.reason};
  }
  Event operator()(const ContractFault& r) const {
    const std::string where = r.line > 0 ? "line " + std::to_string(r.line) + ": " : "";
    return ContractBroken{stamp, where + r.reason};
  }
};

// Two pools of one name on one machine, or one begun anew, count allocations from 0 alike: their
// control groups must differ, for a group is killed whole.
std::string mark_of(const std::string& run_directory) {
  struct stat info {};
  (void)::stat(run_directory.c_str(), &info);
  const std::string text =
      run_directory + " " + std::to_string(info.st_dev) + " " + std::to_string(info.st_ino);
  std::uint32_t hash = 2'166'136'261U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  char mark[9];
  std::snprintf(mark, sizeof mark, "%08x", hash);
  return mark;
}

}  // namespace

Event event_of(const Report& report) {
  return std::visit(EventMaker{{report.allocation, report.epoch, report.sequence}}, report.body);
}

Result<std::unique_ptr<LocalBackend>> LocalBackend::open(Settings settings, Sink sink,
                                                         OnNote note) {
  std::unique_ptr<LocalBackend> self(
      new LocalBackend(std::move(settings), std::move(sink), std::move(note)));
  auto supervisors =
      Supervisors::open({self->settings_.run_directory, self->settings_.executable},
                        [raw = self.get()](const Report& report) { raw->receive(report); });
  if (!supervisors) return tl::unexpected(supervisors.error());
  const std::string name = self->settings_.plan.pool;
  self->settings_.plan.pool += "-" + mark_of(self->settings_.run_directory);
  self->supervisors_ = std::move(*supervisors);
  const auto adopted = self->supervisors_->adopt(
      [raw = self.get()](const std::vector<FoundAllocation>& found) { raw->remember(found); });
  if (!adopted) return tl::unexpected(adopted.error());
  // What a daemon that was killed left.
  self->remove_groups(name);
  if (self->settings_.verify && !self->settings_.plan.cgroup_root.empty()) {
    self->verifying_ = true;
    self->verifier_ = std::thread([raw = self.get()] { raw->verify(); });
  }
  return self;
}

LocalBackend::~LocalBackend() {
  closing_ = true;
  if (verifier_.joinable()) verifier_.join();
  if (supervisors_) remove_groups(settings_.plan.pool);
}

// Those without processes, but what starts or runs. Tasks that outlive the daemon keep theirs, and
// the next daemon removes what they leave.
void LocalBackend::remove_groups(const std::string& pools) {
  if (settings_.plan.cgroup_root.empty()) return;
  const CgroupRoot root = detect_cgroups(settings_.plan.cgroup_root);
  std::vector<std::string> kept;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [allocation, known] : known_) {
      if (isolation_.limits_of(allocation)) kept.push_back(std::to_string(allocation.value));
    }
  }
  remove_empty_groups(root, "neap/" + settings_.plan.pool, kept);
  remove_empty_pools(root, pools);
}

// Tasks that ask for limits of the host wait for the outcome; the others start meanwhile.
void LocalBackend::verify() {
  const VerifyPlace place{settings_.plan.cgroup_root, settings_.verify_folder,
                          settings_.plan.host.interfaces};
  isolation_.set_checks(verify_kept(place, settings_.verify_kept, [this] { return !closing_; }));
  std::vector<StartTask> waiting;
  {
    const std::lock_guard lock(start_mutex_);
    verifying_ = false;
    waiting.swap(waiting_);
  }
  for (const StartTask& start : waiting) {
    if (!closing_) this->start(start);  // else the next daemon is told again
  }
}

bool LocalBackend::held_back(const StartTask& start, const SupervisedTask& task) {
  if (!verifying_ || !task.cgroup || task.cgroup->required.empty()) return false;
  const bool known = std::any_of(waiting_.begin(), waiting_.end(), [&](const StartTask& one) {
    return one.allocation == start.allocation;
  });
  if (!known) waiting_.push_back(start);
  return true;
}

// A task that is to end before it was started.
bool LocalBackend::withdraw(const Action& action) {
  if (!std::holds_alternative<StopTask>(action) && !std::holds_alternative<KillTask>(action)) {
    return false;
  }
  const std::lock_guard lock(start_mutex_);
  const auto found = std::find_if(
      waiting_.begin(), waiting_.end(),
      [id = allocation_of(action)](const StartTask& one) { return one.allocation == id; });
  if (found == waiting_.end()) return false;
  refuse(*found, "ended before host limits were checked");
  waiting_.erase(found);
  return true;
}

LocalBackend::LocalBackend(Settings settings, Sink sink, OnNote note)
    : settings_(std::move(settings)),
      sink_(std::move(sink)),
      note_(std::move(note)),
      isolation_(settings_.plan.cgroup_root, TrafficShaper(settings_.plan.host.interfaces)) {}

void LocalBackend::remember(const std::vector<FoundAllocation>& found) {
  const std::lock_guard lock(mutex_);
  for (const FoundAllocation& one : found) {
    if (!one.trouble.empty()) note_(one.allocation, one.trouble);
    // One that was never started is not known yet: its StartTask comes again.
    if (one.state == FoundState::never_started) continue;
    Known& known = known_[one.allocation];
    if (one.task) {
      const std::string directory = supervisors_->directory_of(one.allocation);
      isolation_.add(directory, *one.task);
      if (was_started(directory)) isolation_.started(one.allocation);
    }
    if (one.state != FoundState::supervised || !one.task || !one.task->service) continue;
    known.port = one.task->service->port;
    ports_.reserve(*known.port);
  }
}

void LocalBackend::carry_out(const Action& action) {
  const AllocationId id = allocation_of(action);
  if (const auto* begin = std::get_if<StartTask>(&action)) return start(*begin);
  if (withdraw(action)) return;
  if (const auto* yield = std::get_if<AskYield>(&action)) {
    // Finishing needs no word to the task, and killing has its own action.
    if (yield->mode == ReleaseMode::boundary || yield->mode == ReleaseMode::on_demand) {
      const bool now = yield->mode == ReleaseMode::on_demand;
      supervisors_->send(id, RequestYield{now ? YieldAt::now : YieldAt::boundary, yield->by});
    }
  } else if (std::holds_alternative<WithdrawYield>(action)) {
    supervisors_->send(id, WithdrawYieldRequest{});
  } else if (std::holds_alternative<AskCheckpoint>(action)) {
    supervisors_->send(id, RequestCheckpoint{});
  } else if (const auto* stop = std::get_if<StopTask>(&action)) {
    supervisors_->send(id, Drain{});
    supervisors_->send(id, Terminate{stop->kill_at});
  } else if (std::holds_alternative<KillTask>(action)) {
    supervisors_->send(id, Kill{});
  }
}

void LocalBackend::start(const StartTask& start) {
  const std::lock_guard one_at_a_time(start_mutex_);
  if (knows(start.allocation)) return;  // attached already: idempotent
  const auto wants_port = needs_port(start);
  if (!wants_port) return refuse(start, to_string(wants_port.error()));
  std::optional<std::int32_t> port;
  if (*wants_port) {
    const auto free = ports_.take();
    if (!free) return refuse(start, free.error().message);
    port = *free;
  }
  auto task = plan_start(start, settings_.plan, port);
  const auto folder = prepare_artifacts(start, settings_.plan);
  if (!task || !folder) {
    if (port) ports_.give_back(*port);
    return refuse(start, to_string(task ? folder.error() : task.error()));
  }
  if (held_back(start, *task)) {
    if (port) ports_.give_back(*port);
    return;
  }
  if (auto ready = limit(*task); !ready) {
    if (port) ports_.give_back(*port);
    return refuse(start, to_string(ready.error()));
  }
  {
    const std::lock_guard lock(mutex_);
    known_[start.allocation] = Known{port};
  }
  isolation_.add(supervisors_->directory_of(start.allocation), *task);
  supervisors_->start(std::move(*task));
}

Result<void> LocalBackend::limit(SupervisedTask& task) const {
  if (!task.cgroup) return {};
  isolation_.keep_offered(*task.cgroup);
  if (auto offered = isolation_.offers_all(task.cgroup->required); !offered) return offered;
  return isolation_.prepare(task);
}

void LocalBackend::refuse(const StartTask& start, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    known_[start.allocation] = Known{};
  }
  sink_(neap::StartFailed{{start.allocation, 1, 1}, reason});
}

void LocalBackend::receive(const Report& report) {
  if (const auto* started = std::get_if<Started>(&report.body)) {
    isolation_.started(report.allocation);
    for (const std::string& limit : started->not_enforced) {
      note_(report.allocation, "not enforced: " + limit);
    }
    const std::lock_guard lock(mutex_);
    known_[report.allocation].refused = started->not_enforced;
  }
  if (report.terminal()) {
    isolation_.ended(report.allocation);
    ended(report.allocation);
  }
  sink_(event_of(report));
}

void LocalBackend::ended(AllocationId allocation) {
  std::optional<AllocationId> oldest;
  {
    const std::lock_guard lock(mutex_);
    Known& known = known_[allocation];
    if (known.port) ports_.give_back(*known.port);
    known.port.reset();
    ended_.push_back(allocation);
    if (ended_.size() > settings_.keep_ended) {
      oldest = ended_.front();
      ended_.pop_front();
      known_.erase(*oldest);
    }
  }
  if (oldest) supervisors_->forget(*oldest);
}

void LocalBackend::acknowledge(const ReportStamp& stamp) {
  supervisors_->acknowledge(stamp.source, stamp.sequence);
}

std::optional<std::int32_t> LocalBackend::port_of(AllocationId allocation) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(allocation);
  return found == known_.end() ? std::nullopt : found->second.port;
}

std::vector<std::string> LocalBackend::refused_limits_of(AllocationId allocation) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(allocation);
  return found == known_.end() ? std::vector<std::string>() : found->second.refused;
}

bool LocalBackend::knows(AllocationId allocation) const {
  const std::lock_guard lock(mutex_);
  return known_.contains(allocation);
}

std::string LocalBackend::directory_of(AllocationId allocation) const {
  return supervisors_->directory_of(allocation);
}

}  // namespace neap::local
