#include "simulate/forecast/replay.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "core/model/pool_index.h"

namespace neap::forecast {

namespace {

constexpr Micros start_takes = seconds(1);         // from devices to a running process
constexpr Micros replica_loads = seconds(30);      // until its first answer
constexpr std::int64_t looks_at_stop_every = 256;  // events

ReportStamp next_stamp(const TaskState& task) {
  if (task.report_epoch == 0) return {task.allocation, 1, 1};
  return {task.allocation, task.report_epoch, task.report_sequence + 1};
}

Micros held_by(const TaskState& task, Time now) {
  const bool runs = task.phase == Phase::running || task.phase == Phase::yielding;
  return runs ? task.done + (now - task.started_at) : task.done;
}

bool reports_checkpoints(const TaskState& task) {
  const ContractSpec& c = task.spec.contract;
  return (c.sdk || c.watch) && c.interval.value > 0;
}

}  // namespace

PoolState ready_for_replays(const PoolState& state) {
  std::set<TierId> tiers;
  state.tasks.for_each([&](const TaskState& task) {
    if (!has_ended(task.phase)) tiers.insert(task.tier);
  });
  PoolState copy(state);
  if (tiers.size() > 1 && state.spec.preempt.enabled) return copy;
  std::vector<TaskId> ids;
  copy.tasks.for_each([&](const TaskState& task) {
    if (!has_ended(task.phase)) ids.push_back(task.id);
  });
  for (const TaskId id : ids) {
    TaskState& task = copy.tasks.at(id);
    task.spec.contract.interval = Micros(0);  // none is awaited
    task.checkpoint_due = Time::never();
  }
  rebuild_index(copy);
  return copy;
}

Replay::Replay(PoolState& state, Time now, const History& history, std::uint64_t seed)
    : state_(state), history_(history), chance_(seed), now_(std::max(now, state.now)) {
  state_.tasks.for_each([this](const TaskState& task) {
    if (holds_devices(task.phase)) take_up(task);
  });
}

void Replay::take_up(const TaskState& task) {
  switch (task.phase) {
    case Phase::starting:
      plan(task, Report::started, now_ + start_takes);
      break;
    case Phase::running:
      run_on(task);
      break;
    case Phase::yielding:
      plan(task, Report::yielded, std::max(now_, task.yield_by));
      break;
    default:
      plan(task, Report::stopped, std::max(now_, std::min(task.kill_at, now_ + minutes(1))));
  }
}

void Replay::plan(const TaskState& task, Report report, Time at) {
  queue_.push({at, order_++, task.id, work_[task.id].plan, report});
}

// It runs: until its end, and with a checkpoint at each boundary before.
void Replay::run_on(const TaskState& task) {
  if (task.service.valid()) {
    if (!task.ready) plan(task, Report::healthy, now_ + replica_loads);
    return;
  }
  Work& work = work_[task.id];
  const Micros held = held_by(task, now_);
  if (!work.total || *work.total <= held) work.total = history_.draw_total(task, held, chance_);
  work.end = now_ + (*work.total - held);
  plan(task, Report::finished, work.end);
  plan_save(task, task.captured);
}

void Replay::plan_save(const TaskState& task, Time captured) {
  if (!reports_checkpoints(task)) return;
  const Micros interval = task.spec.contract.interval;
  const std::int64_t passed = std::max<std::int64_t>(0, (now_ - captured).value / interval.value);
  const Time at = captured + interval * (passed + 1);
  if (at < work_[task.id].end) plan(task, Report::saved, at);
}

const TaskState* Replay::holder(AllocationId allocation) const {
  const auto found = state_.index->allocations.find(allocation);
  return found == state_.index->allocations.end() ? nullptr : state_.tasks.find(found->second);
}

std::optional<std::vector<Time>> Replay::run(const std::vector<TaskId>& asked, const Limits& limits,
                                             const std::stop_token& stop) {
  std::vector<Time> starts(asked.size(), Time::never());
  std::size_t left = asked.size();
  const Time end = now_ + limits.horizon;
  for (std::int64_t n = 0; n < limits.events && left > 0; ++n) {
    if (n % looks_at_stop_every == 0 && stop.stop_requested()) return std::nullopt;
    const Time timer = next_timer(state_);
    const Time due = timer == Time::never() ? timer : std::max(timer, now_);
    const Time next = queue_.empty() ? due : std::min(due, queue_.top().at);
    if (next > end) break;
    now_ = std::max(now_, next);
    if (due <= next) {
      apply(TimerFired{});
    } else {
      const Entry entry = queue_.top();
      queue_.pop();
      happen(entry);
    }
    for (const auto& [task, at] : std::exchange(placed_, {})) {
      const auto known = std::lower_bound(asked.begin(), asked.end(), task);
      if (known == asked.end() || *known != task) continue;
      Time& start = starts[static_cast<std::size_t>(known - asked.begin())];
      if (start != Time::never()) continue;
      start = at;
      --left;
    }
  }
  return starts;
}

void Replay::happen(const Entry& entry) {
  const TaskState* task = state_.tasks.find(entry.task);
  if (task == nullptr || !holds_devices(task->phase)) return;
  if (entry.plan != work_[entry.task].plan) return;
  switch (entry.report) {
    case Report::started: {
      const bool again = task->first_started != Time(0) && !task->service.valid();
      if (Work& work = work_[task->id]; again && work.total) *work.total += restore_of(*task);
      apply(TaskStarted{next_stamp(*task)});
      task = state_.tasks.find(entry.task);
      if (task->phase == Phase::running) run_on(*task);
      break;
    }
    case Report::healthy:
      apply(ReplicaHealthy{next_stamp(*task)});
      break;
    case Report::saved:
      save(*task, now_);
      plan_save(*task, now_);
      break;
    case Report::finished:
      exit(*task, 0, 0);
      break;
    case Report::yielded:
      save(*task, now_ - task->spec.contract.release - task->spec.contract.save);
      if (holds_devices(task->phase)) exit(*task, 75, 0);
      break;
    case Report::stopped:
      exit(*task, 0, task->service.valid() ? 0 : 15);
      break;
  }
}

void Replay::save(const TaskState& task, Time captured) {
  if (!task.spec.contract.sdk && !task.spec.contract.watch) return;
  if (task.phase == Phase::starting) return;
  CheckpointDurable saved;
  saved.stamp = next_stamp(task);
  saved.step = std::max(task.last_step, task.durable_step) + 1;
  saved.path = task.checkpoint_path;
  saved.captured = std::max(captured, task.started_at);
  apply(saved);
}

void Replay::exit(const TaskState& task, std::int32_t code, std::int32_t signal) {
  ++work_[task.id].plan;
  TaskExited exited;
  exited.stamp = next_stamp(task);
  exited.code = code;
  exited.signal = signal;
  apply(exited);
}

void Replay::apply(const Event& event) {
  result_.decisions.clear();
  result_.actions.clear();
  step(state_, now_, event, result_);
  for (const Decision& decision : result_.decisions) {
    if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
      placed_.emplace_back(placed->task, now_);
    }
  }
  for (const Action& action : std::exchange(result_.actions, {})) follow(action);
}

// What a backend reports of it, in time.
void Replay::follow(const Action& action) {
  const TaskState* task = holder(allocation_of(action));
  if (task == nullptr) return;
  if (std::holds_alternative<StartTask>(action)) {
    plan(*task, Report::started, now_ + start_takes);
    return;
  }
  Work& work = work_[task->id];
  if (const auto* yield = std::get_if<AskYield>(&action)) {
    const Time by = std::max(yield->by, now_);
    if (work.end <= by || task->phase == Phase::starting) return;
    ++work.plan;
    plan(*task, Report::yielded, by);
  } else if (std::holds_alternative<WithdrawYield>(action)) {
    ++work.plan;
    if (task->phase == Phase::starting) {
      plan(*task, Report::started, now_ + start_takes);
    } else {
      run_on(*task);
    }
  } else if (const auto* stopped = std::get_if<StopTask>(&action)) {
    ++work.plan;
    plan(*task, Report::stopped,
         std::max(now_, std::min(stopped->kill_at, now_ + task->spec.contract.release)));
  } else if (std::holds_alternative<KillTask>(action)) {
    ++work.plan;
    plan(*task, Report::stopped, now_ + seconds(1));
  }
}

}  // namespace neap::forecast
