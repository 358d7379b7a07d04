#include "tests/sim/daemon.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/model/check.h"

namespace neap::sim {

namespace {
constexpr Ppm half{500'000};
constexpr std::size_t records_per_snapshot = 400;
constexpr int most_timers_at_once = 200;
}  // namespace

Daemon::Daemon(simulated::Timeline& timeline, simulated::SimulatedBackend& backend,
               simulated::Random random, CrashPlan crashes, LoopObserver& observer)
    : timeline_(timeline),
      backend_(backend),
      random_(random),
      crashes_(crashes),
      observer_(observer),
      step_([](PoolState& state, Time now, const Event& event, StepResult& result) {
        step(state, now, event, result);
      }) {}

void Daemon::boot() {
  NEAP_CHECK(!up_);
  up_ = true;
  ++life_;
  state_ = journal_.restore();
  sequencer_ = Sequencer();
  sequencer_.restore(state_);
  observer_.restarted(state_, journal_);
  backend_.connect([this](const Event& report) { tell(report); });
  for (const Action& action : pending_actions(state_)) backend_.carry_out(action);
  if (state_.configured) tell(TimerFired{});
}

void Daemon::crash() {
  if (!up_) return;
  up_ = false;
  ++life_;
  ++crash_count_;
  backend_.crash_daemon();
  journal_.crash();
  writing_.clear();
  committing_ = false;
  ++timer_;
  timer_at_ = Time::never();
  timeline_.after(random_.between(crashes_.down_least, crashes_.down_most), [this] { boot(); });
}

bool Daemon::crashes_at(CrashPoint point) {
  if (crashes_.write && *crashes_.write == writes_ && crashes_.point == point) {
    crashes_.write.reset();
    crash();
    return true;
  }
  if (!random_.chance(crashes_.at_each_point)) return false;
  crash();
  return true;
}

void Daemon::tell(const Event& event) {
  if (!up_) return;
  const ReportStamp* stamp = stamp_of(event);
  if (stamp != nullptr && sequencer_.is_old(*stamp) && journal_.durable() == journal_.size()) {
    backend_.acknowledge(*stamp);
    return;
  }
  std::vector<Event> ready;
  sequencer_.admit(event, ready);
  for (const Event& next : ready) {
    if (!check_event(state_, next)) continue;
    const auto first = before_ ? before_(state_, next) : std::nullopt;
    if (first && check_event(state_, *first) && !take(*first, nullptr)) return;
    if (!take(next, nullptr)) return;
  }
}

Result<void> Daemon::ask(const Event& event, std::function<void()> done) {
  if (!up_) return fail(ErrorCode::unavailable, "the daemon is down");
  if (auto allowed = check_event(state_, event); !allowed) return allowed;
  take(event, std::move(done));
  return {};
}

std::vector<AllocationId> Daemon::holders_on(const std::string& node) const {
  std::vector<AllocationId> found;
  state_.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) return;
    for (const Slot& slot : task.slots) {
      if (state_.node(state_.device(slot.device).node).name == node) {
        found.push_back(task.allocation);
        return;
      }
    }
  });
  return found;
}

// False: it crashed.
bool Daemon::take(const Event& original, std::function<void()> done) {
  const Event event = rewrite_ ? rewrite_(original) : original;
  const Time now = timeline_.now();
  const auto* lost = std::get_if<NodeLost>(&event);
  const std::vector<AllocationId> before =
      lost != nullptr ? holders_on(lost->node) : std::vector<AllocationId>();
  StepResult result;
  step_(state_, now, event, result);
  ++events_;
  if (crashes_at(CrashPoint::before_append)) return false;
  journal_.append(now, event, result.decisions);
  if (journal_.size() % records_per_snapshot < 1 + result.decisions.size()) {
    journal_.snapshot(state_);
  }
  forget_ended(event, before);
  Write write;
  write.records = journal_.size();
  write.actions = result.actions;
  if (const ReportStamp* stamp = stamp_of(original)) write.stamps.push_back(*stamp);
  if (done) write.done.push_back(std::move(done));
  if (bug_ == LoopBug::acts_before_durable) {
    for (const Action& action : std::exchange(write.actions, {})) backend_.carry_out(action);
  }
  if (bug_ == LoopBug::acknowledges_before_durable) {
    for (const ReportStamp& stamp : std::exchange(write.stamps, {})) backend_.acknowledge(stamp);
  }
  writing_.push_back(std::move(write));
  observer_.stepped(state_, now, event, result);
  schedule_commit();
  schedule_timer();
  return true;
}

void Daemon::forget_ended(const Event& event, const std::vector<AllocationId>& before) {
  if (std::holds_alternative<TaskExited>(event) || std::holds_alternative<StartFailed>(event)) {
    sequencer_.forget(stamp_of(event)->source);
  }
  if (before.empty()) return;
  std::vector<AllocationId> holding;
  state_.tasks.for_each([&](const TaskState& task) {
    if (holds_devices(task.phase)) holding.push_back(task.allocation);
  });
  for (const AllocationId allocation : before) {
    if (std::find(holding.begin(), holding.end(), allocation) == holding.end()) {
      sequencer_.forget(allocation);
    }
  }
}

void Daemon::schedule_commit() {
  if (committing_ || writing_.empty()) return;
  committing_ = true;
  timeline_.after(random_.between(Micros(0), milliseconds(5)), [this, life = life_] {
    if (life == life_) commit();
  });
}

void Daemon::commit() {
  if (crashes_at(CrashPoint::before_commit)) return;
  const std::size_t records = journal_.size();
  timeline_.after(random_.between(milliseconds(1), milliseconds(8)), [this, life = life_, records] {
    if (life == life_) committed(records);
  });
}

void Daemon::committed(std::size_t records) {
  // A crash while the disk writes: all of it has reached the disk, or nothing.
  const std::size_t before = journal_.durable();
  journal_.set_durable(random_.chance(half) ? records : before);
  if (crashes_at(CrashPoint::during_commit)) return;
  journal_.set_durable(records);
  if (crashes_at(CrashPoint::before_actions)) return;
  while (!writing_.empty() && writing_.front().records <= records) {
    Write write = std::move(writing_.front());
    writing_.pop_front();
    if (!release(write)) return;
  }
  ++writes_;
  committing_ = false;
  schedule_commit();
}

bool Daemon::release(Write& write) {
  for (const Action& action : write.actions) {
    backend_.carry_out(action);
    if (crashes_at(CrashPoint::between_actions)) return false;
  }
  if (crashes_at(CrashPoint::before_acks)) return false;
  for (const ReportStamp& stamp : write.stamps) backend_.acknowledge(stamp);
  for (const auto& done : write.done) done();
  return !crashes_at(CrashPoint::after_acks);
}

void Daemon::schedule_timer() {
  Time due = next_timer(state_);
  if (due == Time::never()) {
    ++timer_;
    timer_at_ = due;
    return;
  }
  due = std::max(due, timeline_.now());
  if (due == timer_at_) return;
  timer_at_ = due;
  timeline_.at(due, [this, timer = ++timer_] {
    if (timer != timer_ || !up_) return;
    timers_at_once_ = state_.now == timeline_.now() ? timers_at_once_ + 1 : 0;
    if (timers_at_once_ > most_timers_at_once) return observer_.spins(timeline_.now());
    timer_at_ = Time::never();
    take(TimerFired{}, nullptr);
  });
}

}  // namespace neap::sim
