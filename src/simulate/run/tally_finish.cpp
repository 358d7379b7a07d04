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

// What is collected of a group of jobs before it is summed up.
struct Group {
  JobFigures figures;
  std::vector<std::int64_t> waits, completions;
  Series::Wide waiting = 0;
  Series::Wide held = 0;
  Series::Wide lost = 0;
};

void sum_up(Group& group, JobFigures& into) {
  JobFigures& figures = group.figures;
  figures.wait = spread_of(group.waits);
  figures.completion = spread_of(group.completions);
  const std::int64_t taken = figures.jobs - figures.refused;
  figures.mean_waiting_us = taken == 0 ? 0 : static_cast<std::int64_t>(group.waiting / taken);
  figures.held_device_us = static_cast<std::int64_t>(group.held / whole_device.value);
  figures.lost_device_us = static_cast<std::int64_t>(group.lost / whole_device.value);
  into = figures;
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
  for (std::size_t id = 0; id < job_index_.size(); ++id) {
    Job* job = job_of(TaskId(static_cast<std::uint32_t>(id)));
    if (job == nullptr || job->fate != Fate::open) continue;
    const TaskState& task = state.tasks.at(TaskId(static_cast<std::uint32_t>(id)));
    job->waited_us = task.waited.value;
    job->lost_us = task.lost.value;
    job->preemptions = task.preemptions;
    if (task.phase == Phase::waiting) job->waited_us += (end - task.phase_since).value;
    if (job->holding_since != Time::never()) {
      job->held += job->milli * (end - job->holding_since).value;
    }
    if (job->started != Time::never()) continue;
    add_reason(std::string(name_of(wait_code_of(state, task))), explain_wait(state, task),
               task.spec.name);
  }
}

void Tally::fill_jobs(Outcome& into) const {
  Group all;
  std::vector<Group> tiers(tier_names_.size());
  std::vector<Group> teams(team_names_.size());
  for (const Job& job : jobs_) {
    for (Group* group : {&all, &tiers[job.tier], &teams[job.team]}) {
      JobFigures& f = group->figures;
      const bool started = job.started != Time::never();
      ++f.jobs;
      f.refused += job.fate == Fate::refused ? 1 : 0;
      f.started += started ? 1 : 0;
      f.finished += job.fate == Fate::finished ? 1 : 0;
      f.failed += job.fate == Fate::failed ? 1 : 0;
      f.unfinished += job.fate == Fate::open ? 1 : 0;
      f.preemptions += job.preemptions;
      f.preempted_jobs += job.preemptions > 0 ? 1 : 0;
      f.with_deadline += job.deadline ? 1 : 0;
      if (started) group->waits.push_back((job.started - job.submitted).value);
      group->waiting += job.waited_us;
      group->held += job.held;
      group->lost += Series::Wide{job.lost_us} * job.milli;
      if (job.fate != Fate::finished) continue;
      group->completions.push_back((job.ended - job.submitted).value);
      f.deadlines_met += job.deadline && job.ended <= *job.deadline ? 1 : 0;
    }
  }
  sum_up(all, into.all);
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (tiers[i].figures.jobs > 0) sum_up(tiers[i], into.tiers[tier_names_[i]]);
  }
  for (std::size_t i = 0; i < teams.size(); ++i) sum_up(teams[i], into.teams[team_names_[i]]);
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
