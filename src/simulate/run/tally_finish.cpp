// The end of a tally: what the counts of a run come to.
#include <algorithm>
#include <utility>

#include "core/rules/explain.h"
#include "simulate/run/tally.h"

namespace neap::whatif {

namespace {

constexpr std::size_t quantiles = 100;

std::int64_t ppm_of(Series::Wide part, Series::Wide all) {
  return all <= 0 ? 0 : static_cast<std::int64_t>(part * all_ppm.value / all);
}

}  // namespace

void Tally::finish(const PoolState& state, Time end, Outcome& into) {
  series_.settle(end);
  for (Service& service : services_) settle(service, end);
  look_at_open_jobs(state, end);
  const Time begin = series_.begin();
  into.events = events_;
  into.decisions = decisions_;
  Series::Wide capacity = 0;
  for (const NodeUse& node : nodes_) capacity += node.total;
  const Series::Wide provisioned = capacity * (end - begin).value;
  Series::Wide held = 0;
  for (std::size_t tier = 0; tier < tier_names_.size(); ++tier) held += series_.integral(tier);
  into.allocated_ppm = ppm_of(held, provisioned);
  const Series::Wide while_arriving = capacity * (last_arrival_ - begin).value;
  into.allocated_while_arriving_ppm =
      while_arriving == 0 ? into.allocated_ppm : ppm_of(held_while_arriving_, while_arriving);
  into.fragmented_ppm = ppm_of(series_.integral(fragmented_channel()), provisioned);
  fill_jobs(into);
  for (const auto& [reason, found] : reasons_) into.never_started.push_back(found);
  for (const Service& service : services_) {
    ServiceFigures figures;
    figures.name = service.name;
    const std::int64_t us = std::max<std::int64_t>(1, (end - begin).value);
    figures.mean_replicas_milli = static_cast<std::int64_t>(service.held * 1'000 / us);
    figures.most_replicas = service.most_replicas;
    figures.served_ppm = service.load == 0 ? all_ppm.value : ppm_of(service.served, service.load);
    figures.short_us = service.short_us;
    into.services.push_back(std::move(figures));
  }
  fill_curves(end, into);
}

// Jobs that wait or run when all ends: their figures up to here, and why they never started.
void Tally::look_at_open_jobs(const PoolState& state, Time end) {
  std::vector<TaskId> open;
  for (const auto& [id, job] : open_jobs_) open.push_back(id);
  std::sort(open.begin(), open.end());
  for (const TaskId id : open) {
    Job& job = open_jobs_.at(id);
    const TaskState& task = state.tasks.at(id);
    job.waited_us = task.waited.value;
    job.lost_us = task.lost.value;
    job.preemptions = task.preemptions;
    if (task.phase == Phase::waiting) job.waited_us += (end - task.phase_since).value;
    if (job.holding_since != Time::never()) {
      job.held += job.milli * (end - job.holding_since).value;
    }
    count(job, Fate::open, end);
    if (job.started != Time::never()) continue;
    add_reason(std::string(name_of(wait_code_of(state, task))), explain_wait(state, task),
               task.spec.name);
  }
  open_jobs_.clear();
}

void Tally::count(const Job& job, Fate fate, Time ended) {
  Group& group = groups_[{job.tier, job.team}];
  JobFigures& f = group.figures;
  const bool started = job.started != Time::never();
  ++f.jobs;
  f.refused += fate == Fate::refused ? 1 : 0;
  f.started += started ? 1 : 0;
  f.finished += fate == Fate::finished ? 1 : 0;
  f.failed += fate == Fate::failed ? 1 : 0;
  f.unfinished += fate == Fate::open ? 1 : 0;
  f.preemptions += job.preemptions;
  f.preempted_jobs += job.preemptions > 0 ? 1 : 0;
  f.with_deadline += job.deadline ? 1 : 0;
  if (started) group.waits.push_back((job.started - job.submitted).value);
  group.waiting += job.waited_us;
  group.held += job.held;
  group.lost += Series::Wide{job.lost_us} * job.milli;
  if (fate != Fate::finished) return;
  group.completions.push_back((ended - job.submitted).value);
  f.deadlines_met += job.deadline && ended <= *job.deadline ? 1 : 0;
}

void Tally::Group::add(const Group& other) {
  JobFigures& f = figures;
  const JobFigures& o = other.figures;
  f.jobs += o.jobs;
  f.refused += o.refused;
  f.started += o.started;
  f.finished += o.finished;
  f.failed += o.failed;
  f.unfinished += o.unfinished;
  f.preemptions += o.preemptions;
  f.preempted_jobs += o.preempted_jobs;
  f.with_deadline += o.with_deadline;
  f.deadlines_met += o.deadlines_met;
  waiting += other.waiting;
  held += other.held;
  lost += other.lost;
  waits.insert(waits.end(), other.waits.begin(), other.waits.end());
  completions.insert(completions.end(), other.completions.begin(), other.completions.end());
}

// Sorts what it collected.
void Tally::Group::sum_up(JobFigures& into) {
  figures.wait = spread_of(waits);
  figures.completion = spread_of(completions);
  const std::int64_t taken = figures.jobs - figures.refused;
  figures.mean_waiting_us = taken == 0 ? 0 : static_cast<std::int64_t>(waiting / taken);
  figures.held_device_us = static_cast<std::int64_t>(held / whole_device.value);
  figures.lost_device_us = static_cast<std::int64_t>(lost / whole_device.value);
  into = figures;
}

// One group after the other, so that their times are not all in memory twice.
void Tally::fill_jobs(Outcome& into) {
  const auto sum_of = [&](const auto& belongs) {
    Group sum;
    for (const auto& [key, group] : groups_) {
      if (belongs(key.first, key.second)) sum.add(group);
    }
    return sum;
  };
  for (std::size_t i = 0; i < tier_names_.size(); ++i) {
    Group tier = sum_of([&](std::size_t t, std::size_t) { return t == i; });
    if (tier.figures.jobs > 0) tier.sum_up(into.tiers[tier_names_[i]]);
  }
  for (std::size_t i = 0; i < team_names_.size(); ++i) {
    Group team = sum_of([&](std::size_t, std::size_t t) { return t == i; });
    team.sum_up(into.teams[team_names_[i]]);
  }
  Group all = sum_of([](std::size_t, std::size_t) { return true; });
  all.sum_up(into.all);
  // `waits` is sorted by now.
  for (std::size_t percent = 0; percent <= quantiles && !all.waits.empty(); ++percent) {
    const std::size_t rank = (all.waits.size() * percent + quantiles - 1) / quantiles;
    into.wait_quantiles_us.push_back(all.waits[std::max<std::size_t>(rank, 1) - 1]);
  }
}

void Tally::fill_curves(Time end, Outcome& into) {
  Curves& curves = into.curves;
  curves.span_us = series_.span().value;
  curves.tiers = tier_names_;
  for (std::size_t tier = 0; tier < tier_names_.size(); ++tier) {
    curves.use.push_back(series_.means(tier, end));
  }
  curves.fragmented = series_.means(fragmented_channel(), end);
  curves.waiting_milli = series_.means(milli_channel(), end);
  curves.waiting_jobs_milli = series_.means(jobs_channel(), end);
}

}  // namespace neap::whatif
