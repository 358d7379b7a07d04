#include "backend/simulated/training.h"

#include <algorithm>
#include <charconv>

namespace neap::simulated {

namespace {

constexpr std::int32_t code_yielded = 75;
constexpr int sigterm = 15;

std::string path_of(const std::string& name, std::int64_t step) {
  return "checkpoints/" + name + "/" + std::to_string(step);
}

std::int64_t step_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::int64_t step = 0;
  if (slash != std::string::npos) {
    std::from_chars(path.data() + slash + 1, path.data() + path.size(), step);
  }
  return step;
}

}  // namespace

void Training::begin() {
  if (speaks()) {
    report(ContractGreeting{.on_demand = order_.contract.on_demand, .boundary = true});
  }
  // A task that only knows signals finds its checkpoint itself.
  const std::int64_t from = order_.restore_from.empty() && !speaks() ? record().durable_step
                                                                     : step_of(order_.restore_from);
  if (from > record().durable_step) {
    return end(1, 0, "restored from a checkpoint that was never made");
  }
  const Micros loading = behaviour_.load + (from > 0 ? behaviour_.restore : Micros(0));
  after(loading, [this, from] {
    reported_ = from;
    last_boundary_ = last_report_ = now();
    tell_memory();
    run_from(from);
  });
}

Micros Training::step_time() const {
  const auto has = static_cast<std::int64_t>(order_.slots.size());
  if (behaviour_.devices <= 0 || has == 0) return behaviour_.step;
  return Micros((behaviour_.step.value * behaviour_.devices + has - 1) / has);
}

void Training::run_from(std::int64_t step) {
  forget_plans();
  doing_ = Doing::stepping;
  step_ = segment_step_ = step;
  segment_start_ = now();
  plan();
}

std::int64_t Training::step_at(Time moment) const {
  if (doing_ != Doing::stepping) return step_;
  return segment_step_ + (moment - segment_start_).value / step_time().value;
}

Time Training::end_of(std::int64_t step) const {
  return segment_start_ + step_time() * (step - segment_step_);
}

Time Training::next_boundary() const {
  if (behaviour_.interval.value == 0 || shows(Fault::skips_checkpoints)) return Time::never();
  const Micros due = last_boundary_ + behaviour_.interval - segment_start_;
  const std::int64_t steps =
      std::max<std::int64_t>(1, (due.value + step_time().value - 1) / step_time().value);
  return end_of(segment_step_ + steps);
}

// The next moment at which anything but stepping happens.
void Training::plan() {
  forget_plans();
  const std::int64_t running = step_at(now()) + 1;
  Time next = std::min(next_boundary(), end_of(behaviour_.steps));
  if (speaks()) {
    const Time report_due = last_report_ + behaviour_.report;
    next = std::min(next, std::max(end_of(running), report_due));
  }
  if (save_now_) next = std::min(next, end_of(running));
  if (behaviour_.fault_at > step_) next = std::min(next, end_of(behaviour_.fault_at));
  at(std::max(next, now()), [this] { arrive(); });
}

void Training::arrive() {
  const Time boundary = next_boundary();
  const bool step_ended = step_at(now()) > step_ || now() == end_of(step_at(now()));
  record().executed_steps += step_at(now()) - step_;
  step_ = step_at(now());
  if (misbehave()) return;
  if (step_ >= behaviour_.steps) return finish();
  const bool report_due = now() >= last_report_ + behaviour_.report;
  if (speaks() && step_ > reported_ && report_due) report_steps();
  if (!saving_ && (now() >= boundary || (save_now_ && step_ended))) return save();
  plan();
}

bool Training::misbehave() {
  if (behaviour_.fault_at == 0 || step_ < behaviour_.fault_at) return false;
  if (shows(Fault::crashes)) {
    crash("the simulated program failed");
    return true;
  }
  if (shows(Fault::yields_unasked)) {
    doing_ = Doing::releasing;
    end(code_yielded, 0, "yielded unasked");
    return true;
  }
  if (shows(Fault::breaks_protocol) && step_ == behaviour_.fault_at && speaks()) {
    report(ContractBroken{.detail = "a line that is no JSON object"});
  }
  return false;
}

void Training::report_steps() {
  const std::int64_t count = step_ - reported_;
  const std::int64_t last = shows(Fault::reports_backwards) ? step_ / 2 : step_;
  report(StepsReported{.last = last, .count = count, .busy = step_time() * count});
  reported_ = step_;
  last_report_ = now();
}

// At the end of a step. Training goes on after the stall, unless it is to yield.
void Training::save() {
  forget_plans();
  if (speaks() && step_ > reported_) report_steps();
  doing_ = Doing::stalled;
  saving_ = true;
  save_now_ = false;
  last_boundary_ = now();
  const std::int64_t step = step_;
  if (behaviour_.save > behaviour_.stall) {
    after(behaviour_.stall, [this, step] {
      if (!yield_ || shows(Fault::ignores_yield) || shows(Fault::ignores_term)) run_from(step);
    });
  }
  // The save ends whatever else is planned meanwhile; only the end of the process stops it.
  around_.timeline.after(behaviour_.save, [weak = weak_from_this(), this, step, captured = now()] {
    const auto self = weak.lock();
    if (self && !is_gone()) saved(step, captured);
  });
}

void Training::saved(std::int64_t step, Time captured) {
  if (!saving_) return;
  saving_ = false;
  record().durable_step = std::max(record().durable_step, step);
  if (speaks() || order_.contract.watch) {
    const std::int64_t told = shows(Fault::reports_backwards) ? step / 2 : step;
    report(CheckpointDurable{.step = told,
                             .path = path_of(order_.name, told),
                             .bytes = 1'000'000,
                             .captured = captured,
                             .save = behaviour_.save,
                             .stall = std::min(behaviour_.stall, behaviour_.save)});
  }
  if (doing_ != Doing::stalled) return;
  if (yield_ && !shows(Fault::ignores_yield) && !shows(Fault::ignores_term)) return release();
  run_from(step);
}

void Training::release() {
  forget_plans();
  doing_ = Doing::releasing;
  if (speaks()) report(YieldAcknowledged{.step = step_});
  const bool signalled = !speaks() && !order_.contract.signals;
  after(behaviour_.release, [this, signalled] {
    if (signalled) return end(0, sigterm, "stopped at a boundary");
    end(code_yielded, 0, "yielded");
  });
}

void Training::finish() {
  forget_plans();
  if (speaks() && step_ > reported_) report_steps();
  record().finished = true;
  after(milliseconds(500), [this] { end(0, 0, "finished"); });
}

void Training::ask_yield(ReleaseMode mode) {
  if (is_gone() || doing_ == Doing::releasing) return;
  yield_ = mode;
  if (shows(Fault::ignores_yield) || shows(Fault::ignores_term)) return;
  if (shows(Fault::yields_unsaved) && doing_ == Doing::stepping) {
    record().executed_steps += step_at(now()) - step_;
    step_ = step_at(now());
    return release();
  }
  if (mode == ReleaseMode::on_demand) ask_checkpoint();
}

void Training::withdraw_yield() {
  if (doing_ != Doing::releasing) yield_.reset();
}

void Training::ask_checkpoint() {
  if (is_gone() || shows(Fault::skips_checkpoints) || saving_) return;
  save_now_ = true;
  if (doing_ == Doing::stepping) plan();
}

void Training::on_term() {
  if (is_gone() || shows(Fault::ignores_term)) return;
  if (order_.contract.signals && doing_ == Doing::stepping) {
    yield_ = ReleaseMode::on_demand;
    return ask_checkpoint();
  }
  if (doing_ == Doing::releasing) return;
  forget_plans();
  after(around_.random.between(milliseconds(100), seconds(5)),
        [this] { end(0, sigterm, "terminated"); });
}

}  // namespace neap::simulated
