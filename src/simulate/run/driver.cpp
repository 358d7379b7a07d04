#include "simulate/run/driver.h"

#include <algorithm>
#include <utility>

#include "backend/simulated/behaviour.h"
#include "core/model/check.h"
#include "core/model/pool_index.h"
#include "simulate/leftover/learn_pool.h"
#include "simulate/run/read_ahead.h"

namespace neap::whatif {

namespace {

// The engine takes Time(0) for "never was": a run begins on its second day.
constexpr Time first_midnight{86'400'000'000};
// Nothing that is to come for an allocation comes later than this after its end.
constexpr Micros forgotten_after = seconds(1);
// Where nothing runs and nothing comes, what waits for so long waits for ever.
constexpr Micros patience = hours(6);
constexpr std::int64_t most_timers_at_once = 1'000'000;
constexpr std::int64_t happenings_per_progress = 4'096;
constexpr Micros between_request_reports = minutes(5);
constexpr Micros never_reports = hours(24 * 365 * 100);
constexpr Micros usual_step = seconds(1);

// Nothing is lost and nothing late; and nothing is said twice.
constexpr simulated::Network perfect{
    .least = Micros(0), .most = Micros(0), .again_after = Micros(0)};

Time begin_of(const Incoming& first) { return first_midnight + (first.at - Time(0)); }

}  // namespace

// The workload has a first arrival: open_workload() saw to it.
Driver::Driver(const RunSpec& spec, const Hooks& hooks, std::unique_ptr<IncomingStream> workload,
               Incoming first)
    : spec_(spec),
      hooks_(hooks),
      workload_(std::move(workload)),
      base_(first_midnight),
      begin_(begin_of(first)),
      last_arrival_(begin_),
      backend_(timeline_, machines_, perfect, simulated::Random(1)),
      tally_(spec.policy.pool, spec.cluster.nodes, begin_) {
  ahead_ = std::move(first);
  if (spec_.until) end_at_ = begin_ + *spec_.until;
  backend_.connect([this](const Event& report) {
    if (!check_event(state_, report)) return;
    apply(report);
  });
}

Result<Outcome> Driver::run() {
  timeline_.run_until(begin_);
  if (auto opened = open_pool(); !opened) return tl::unexpected(opened.error());
  while (!is_over()) {
    if (auto gone = go_on(); !gone) return tl::unexpected(gone.error());
    if (++happenings_ % happenings_per_progress == 0) show_progress();
  }
  return finish();
}

Result<void> Driver::open_pool() {
  PoolSpec pool = spec_.policy.pool;
  // The cluster is what it is, whatever the file was written for.
  pool.total_gpus = 0;
  if (auto taken = ask(PoolConfigured{std::move(pool)}); !taken) return taken;
  for (const NodeSpec& node : spec_.cluster.nodes) {
    machines_.add(node);
    if (auto taken = ask(NodeJoined{node}); !taken) return taken;
  }
  return {};
}

Time Driver::next_moment() const {
  const Time timer = next_timer(state_);
  Time next = std::min(timeline_.next(), sample_at_);
  if (timer != Time::never()) next = std::min(next, std::max(timer, timeline_.now()));
  if (ahead_) next = std::min(next, base_ + (ahead_->at - Time(0)));
  return next;
}

bool Driver::is_over() const {
  const Time next = next_moment();
  if (next > end_at_ || next == Time::never()) return true;
  if (ahead_ || tally_.running() > 0) return false;
  return tally_.waiting() == 0 || next - tally_.last_change() > patience;
}

// At one moment: what is due in the pool, then what tasks report, then who comes.
Result<void> Driver::go_on() {
  const Time next = next_moment();
  const Time timer = next_timer(state_);
  if (timer != Time::never() && std::max(timer, timeline_.now()) == next) return fire_timer();
  timers_at_once_ = 0;
  if (timeline_.next() == next) {
    timeline_.run_next();
    return {};
  }
  timeline_.run_until(next);
  if (sample_at_ == next) {
    sample_loads();
    return {};
  }
  return take_next();
}

Result<void> Driver::fire_timer() {
  const Time due = std::max(next_timer(state_), timeline_.now());
  if (due > timeline_.now()) timers_at_once_ = 0;
  if (++timers_at_once_ > most_timers_at_once) {
    return fail(ErrorCode::internal, "the engine sets one timer after the other and does nothing");
  }
  // Nothing else is due before it, so this only moves the clock.
  timeline_.advance_to(due);
  apply(TimerFired{});
  return {};
}

Result<void> Driver::take_next() {
  Incoming incoming = std::move(*ahead_);
  last_arrival_ = timeline_.now();
  if (auto fetched = fetch(); !fetched) return fetched;
  return std::visit([this](auto&& what) { return take(std::move(what)); },
                    std::move(incoming.what));
}

Result<void> Driver::fetch() {
  Incoming next;
  const auto more = workload_->next(next);
  if (!more) return tl::unexpected(more.error());
  ahead_.reset();
  if (*more) ahead_ = std::move(next);
  return {};
}

std::string Driver::launch_of(const TaskSpec& spec, Micros duration) const {
  simulated::Behaviour behaviour;
  behaviour.spawn = behaviour.load = Micros(0);
  behaviour.steps = std::max<std::int64_t>(1, duration.value / usual_step.value);
  behaviour.step = std::max(Micros(1), duration / behaviour.steps);
  // Who only knows signals saves when he gets one: between them nothing happens.
  const bool saves = spec.contract.sdk || spec.contract.watch;
  behaviour.interval = saves ? spec.contract.interval : Micros(0);
  behaviour.save = spec.contract.save;
  behaviour.stall = std::min(spec.contract.stall, spec.contract.save);
  behaviour.restore = spec.contract.restore;
  behaviour.release = spec.contract.release;
  behaviour.report = never_reports;  // but with each checkpoint, and at the end
  return simulated::launch_text(behaviour);
}

Result<void> Driver::take(JobIncoming job) {
  TaskSpec& task = job.spec;
  ++job_number_;
  if (task.contract.interval.value == 0) {
    task.contract.interval = spec_.policy.pool.preempt.checkpoint_interval;
  }
  task.launch = launch_of(task, job.duration);
  if (job.deadline) task.deadline = timeline_.now() + *job.deadline;
  if (find_live_task(state_, task.name) || find_live_service(state_, task.name)) {
    task.name += "~" + std::to_string(job_number_);
  }
  const TaskSubmitted submission{std::move(task)};
  if (auto allowed = check_event(state_, submission); !allowed) {
    tally_.refused(state_, submission.spec, timeline_.now(), allowed.error());
    return {};
  }
  tally_.expect_deadline(submission.spec.deadline);
  apply(submission);
  return {};
}

Result<void> Driver::take(ServiceIncoming service) {
  ServiceSpec& spec = service.spec;
  if (spec.max_replicas <= 0 || spec.max_replicas < spec.min_replicas) {
    spec.max_replicas = std::max(spec.min_replicas, 1);
  }
  ScaleSpec scale = spec.scale ? *spec.scale : spec_.policy.pool.scale;
  // Samples of the load come this often here.
  scale.stale_after = std::max(scale.stale_after, spec_.workload.replica.load * 2);
  spec.scale = scale;
  simulated::Behaviour behaviour;
  behaviour.spawn = Micros(0);
  behaviour.load = spec_.workload.replica.start;
  behaviour.drain = spec_.workload.replica.drain;
  spec.launch = simulated::launch_text(behaviour);
  const std::string name = spec.name;
  const std::int32_t concurrency = spec.concurrency;
  if (auto taken = ask(ServiceSubmitted{std::move(spec)}); !taken) return taken;
  loads_[name] = Load{*find_live_service(state_, name), 0, concurrency};
  if (sample_at_ == Time::never()) sample_at_ = timeline_.now() + spec_.workload.replica.load;
  return {};
}

Result<void> Driver::take(const LoadIncoming& load) {
  const auto known = loads_.find(load.service);
  if (known == loads_.end()) return {};
  known->second.in_use_milli = load.in_use_milli;
  tally_.load_changed(state_, timeline_.now(), known->second.id, load.in_use_milli);
  return {};
}

Result<void> Driver::take(const ServiceLeaving& service) {
  const auto known = loads_.find(service.service);
  if (known == loads_.end()) return {};
  tally_.load_changed(state_, timeline_.now(), known->second.id, 0);
  loads_.erase(known);
  if (loads_.empty()) sample_at_ = Time::never();
  return ask(ServiceRemoveRequested{service.service, "the workload"});
}

void Driver::sample_loads() {
  const Micros every = spec_.workload.replica.load;
  sample_at_ = timeline_.now() + every;
  const std::int64_t samples_per_report =
      std::max<std::int64_t>(1, between_request_reports.value / every.value);
  const bool report = ++samples_ % samples_per_report == 0;
  for (const auto& [name, load] : loads_) {
    if (report) report_requests(load, every * samples_per_report);
    const std::int64_t in_use = (load.in_use_milli * load.concurrency + 999) / 1'000;
    apply(ServiceMeasured{name, in_use});
  }
}

// What each ready replica did since the last time: its part of the load, and no more than it can.
void Driver::report_requests(const Load& load, Micros since) {
  std::vector<AllocationId> ready;
  for (const TaskId id : state_.service(load.id).replicas) {
    const TaskState& task = state_.tasks.at(id);
    if (task.ready && task.phase == Phase::running) ready.push_back(task.allocation);
  }
  if (ready.empty() || load.in_use_milli == 0) return;
  const std::int64_t each = load.in_use_milli / static_cast<std::int64_t>(ready.size());
  const std::int64_t within = std::min<std::int64_t>(each, 1'000);
  // Requests are counted in thousandths of a second of one replica.
  const std::int64_t ms = since.value / 1'000;
  RequestsServed served;
  served.within_slo = std::max<std::int64_t>(1, within * ms / 1'000);
  served.responses = std::max(served.within_slo, each * ms / 1'000);
  served.busy_within_slo = Micros(since.value * within / 1'000);
  for (const AllocationId allocation : ready) {
    served.allocation = allocation;
    apply(served);
  }
}

Result<void> Driver::ask(const Event& event) {
  if (auto allowed = check_event(state_, event); !allowed) return allowed;
  apply(event);
  return {};
}

void Driver::apply(const Event& event) {
  const Time now = timeline_.now();
  result_.decisions.clear();
  result_.actions.clear();
  tally_.before(state_, now, event);
  step(state_, now, event, result_);
  ledger_.apply(now, event);
  for (const Decision& decision : result_.decisions) ledger_.apply(now, decision);
  tally_.after(state_, now, event, result_);
  if (hooks_.record) hooks_.record(now, event, result_);
  for (const Action& action : result_.actions) backend_.carry_out(action);
  if (const ReportStamp* stamp = stamp_of(event)) {
    backend_.acknowledge(*stamp);
    if (std::holds_alternative<TaskExited>(event) || std::holds_alternative<StartFailed>(event)) {
      timeline_.after(forgotten_after, [this, gone = stamp->source] { backend_.forget(gone); });
      if (const std::string* name = tally_.ended_job(state_)) backend_.forget_task(*name);
    }
  }
  learn_placement();
  if (!hooks_.learn) return;
  for (const Event& learned : hooks_.learn(state_, result_)) {
    if (check_event(state_, learned)) apply(learned);
  }
}

// As the daemon's learner is asked, at the same records; but nobody waits for the answer.
void Driver::learn_placement() {
  const bool due = spec_.learning == RunSpec::Learning::as_daemon && learning_is_due(state_);
  if (!due || state_.demand.seen == learned_at_) return;
  learned_at_ = state_.demand.seen;
  const auto lesson = simulate::lesson_of(state_);
  if (lesson) apply(*simulate::learn(*lesson));
}

void Driver::show_progress() {
  if (!hooks_.progress) return;
  Progress progress;
  progress.now = Time(0) + (timeline_.now() - base_);
  progress.arrived = tally_.arrived();
  progress.ended = tally_.ended();
  progress.running = tally_.running();
  progress.waiting = tally_.waiting();
  progress.total = workload_->total();
  hooks_.progress(progress);
}

Outcome Driver::finish() {
  const Time next = next_moment();
  cut_off_ = end_at_ != Time::never() && next != Time::never() && next > end_at_ &&
             (ahead_ || tally_.running() + tally_.waiting() > 0);
  const Time end =
      std::max(cut_off_ ? end_at_ : std::max(tally_.last_change(), last_arrival_), state_.now);
  Outcome outcome;
  outcome.policy = spec_.policy.name;
  outcome.seed = spec_.workload.seed;
  outcome.devices = spec_.cluster.devices();
  outcome.nodes = static_cast<std::int64_t>(spec_.cluster.nodes.size());
  outcome.passed_over = workload_->passed_over();
  outcome.begin_us = (begin_ - base_).value;
  outcome.last_arrival_us = (last_arrival_ - base_).value;
  outcome.end_us = (end - base_).value;
  outcome.cut_off = cut_off_;
  outcome.state_hash = hash_of(state_);
  tally_.finish(state_, end, outcome);
  const ledger::Totals totals = ledger_.pool(end);
  const auto ppm = [&](ledger::Amount part) {
    if (totals.provisioned.value() == 0) return std::int64_t{0};
    return static_cast<std::int64_t>(part.value() * all_ppm.value / totals.provisioned.value());
  };
  outcome.effective_ppm = ppm(totals.useful());
  for (std::size_t i = 0; i < ledger::category_count; ++i) {
    outcome.by_category_ppm[i] = ppm(totals.by_category[i]);
  }
  return outcome;
}

Result<Outcome> run_once(const RunSpec& spec, const Hooks& hooks) {
  auto workload = open_workload(spec.workload, spec.policy.pool);
  if (!workload) return tl::unexpected(workload.error());
  Incoming first;
  const auto more = (*workload)->next(first);
  if (!more) return tl::unexpected(more.error());
  if (!*more) return fail(ErrorCode::invalid_argument, "nothing is left of the workload");
  auto ahead = std::make_unique<ReadAhead>(std::move(*workload));
  return Driver(spec, hooks, std::move(ahead), std::move(first)).run();
}

}  // namespace neap::whatif
