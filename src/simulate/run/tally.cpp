#include "simulate/run/tally.h"

#include <algorithm>
#include <utility>

#include "core/model/check.h"
#include "core/model/pool_index.h"

namespace neap::whatif {

namespace {

bool ends_allocation(const Event& event) {
  return std::holds_alternative<TaskExited>(event) || std::holds_alternative<StartFailed>(event);
}

std::int64_t milli_of(const std::vector<Slot>& slots) {
  std::int64_t sum = 0;
  for (const Slot& slot : slots) sum += slot.share.value;
  return sum;
}

}  // namespace

Tally::Tally(const PoolSpec& pool, const std::vector<NodeSpec>& nodes, Time begin)
    : series_(pool.tiers.size() + 3, begin), last_change_(begin), last_arrival_(begin) {
  for (const TierSpec& tier : pool.tiers) tier_names_.push_back(tier.name);
  for (const NodeSpec& node : nodes) {
    nodes_.push_back({static_cast<std::int64_t>(node.devices.size()) * whole_device.value, 0});
  }
}

Tally::Job* Tally::job_of(TaskId task) {
  const auto found = open_jobs_.find(task);
  return found == open_jobs_.end() ? nullptr : &found->second;
}

const std::string* Tally::ended_job(const PoolState& state) const {
  if (!subject_.valid()) return nullptr;
  const TaskState* task = state.tasks.find(subject_);
  const bool ended = task != nullptr && !task->service.valid() && has_ended(task->phase);
  return ended ? &task->spec.name : nullptr;
}

std::uint32_t Tally::team_of(const std::string& name) {
  const auto [known, added] =
      team_ids_.emplace(name, static_cast<std::uint32_t>(team_names_.size()));
  if (added) team_names_.push_back(name);
  return known->second;
}

std::int64_t Tally::waiting() const { return series_.level(jobs_channel()) / 1'000; }

void Tally::change_queue(Time now, const Job& job, std::int64_t sign) {
  series_.change(jobs_channel(), now, sign * 1'000);
  series_.change(milli_channel(), now, sign * job.milli);
}

void Tally::occupy(const PoolState& state, Time now, const std::vector<Slot>& slots, TierId tier,
                   std::int64_t sign) {
  std::int64_t fragmented = 0;
  for (const Slot& slot : slots) {
    NodeUse& node = nodes_[state.device(slot.device).node.value];
    const auto free_beside = [&] { return node.used > 0 ? node.total - node.used : 0; };
    fragmented -= free_beside();
    node.used += sign * slot.share.value;
    fragmented += free_beside();
  }
  series_.change(fragmented_channel(), now, fragmented);
  series_.change(tier.value, now, sign * milli_of(slots));
}

void Tally::before(const PoolState& state, Time now, const Event& event) {
  ++events_;
  subject_ = std::holds_alternative<TaskSubmitted>(event) ? state.tasks.next_id() : TaskId::none();
  const ReportStamp* stamp = stamp_of(event);
  if (stamp == nullptr) return;
  const auto reporter = state.index->allocations.find(stamp->source);
  NEAP_CHECK(reporter != state.index->allocations.end());
  subject_ = reporter->second;
  if (!ends_allocation(event)) return;
  const TaskState& task = state.tasks.at(subject_);
  occupy(state, now, task.slots, task.tier, -1);
  Job* job = job_of(subject_);
  if (job == nullptr) return;
  job->held += job->milli * (now - std::exchange(job->holding_since, Time::never())).value;
  --running_;
  last_change_ = now;
}

void Tally::after(const PoolState& state, Time now, const Event& event, const StepResult& result) {
  decisions_ += static_cast<std::int64_t>(result.decisions.size());
  if (const auto* submission = std::get_if<TaskSubmitted>(&event)) {
    submitted(state, now, submission->spec);
  } else if (ends_allocation(event)) {
    allocation_ended(state, now);
  }
  for (const Decision& decision : result.decisions) {
    if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
      started(state, now, *placed);
    } else if (const auto* denied = std::get_if<TaskRefused>(&decision)) {
      const auto job = open_jobs_.find(denied->task);
      NEAP_CHECK(job != open_jobs_.end());
      change_queue(now, job->second, -1);
      end(job->second, Fate::refused, now);
      open_jobs_.erase(job);
      add_reason("not admitted: " + denied->condition, denied->detail,
                 state.tasks.at(denied->task).spec.name);
    }
  }
  if (!subject_.valid()) return;
  const TaskState& task = state.tasks.at(subject_);
  if (task.service.valid()) refresh_capacity(state, task.service, now);
}

void Tally::submitted(const PoolState& state, Time now, const TaskSpec& spec) {
  ++arrived_;
  Job& job = open_jobs_[subject_];
  job.submitted = last_change_ = last_arrival_ = now;
  job.deadline = std::exchange(deadline_, std::nullopt);
  job.milli = std::int64_t{spec.request.count} * spec.request.share.value;
  job.tier = state.tasks.at(subject_).tier.value;
  job.team = team_of(spec.team);
  change_queue(now, job, +1);
  series_.settle(now);
  held_while_arriving_ = 0;
  for (std::size_t tier = 0; tier < tier_names_.size(); ++tier) {
    held_while_arriving_ += series_.integral(tier);
  }
}

void Tally::started(const PoolState& state, Time now, const TaskPlaced& placed) {
  const TaskState& task = state.tasks.at(placed.task);
  occupy(state, now, placed.slots, task.tier, +1);
  if (task.service.valid()) refresh_capacity(state, task.service, now);
  Job* job = job_of(task.id);
  if (job == nullptr) return;
  if (job->started == Time::never()) job->started = now;
  job->holding_since = last_change_ = now;
  ++running_;
  change_queue(now, *job, -1);
}

// Before the decisions that follow: one of them may give it devices again.
void Tally::allocation_ended(const PoolState& state, Time now) {
  Job* job = job_of(subject_);
  if (job == nullptr) return;
  const TaskState& task = state.tasks.at(subject_);
  job->lost_us = task.lost.value;
  job->preemptions = task.preemptions;
  job->waited_us = task.waited.value;
  if (!has_ended(task.phase)) {
    change_queue(now, *job, +1);
  } else {
    end(*job, task.phase == Phase::finished ? Fate::finished : Fate::failed, now);
    open_jobs_.erase(subject_);
  }
}

void Tally::end(const Job& job, Fate fate, Time now) {
  ++ended_;
  count(job, fate, now);
}

void Tally::refused(const PoolState& state, const TaskSpec& spec, Time now, const Error& error) {
  ++arrived_;
  Job job;
  job.submitted = now;
  job.milli = std::int64_t{spec.request.count} * spec.request.share.value;
  job.team = team_of(spec.team);
  for (std::size_t tier = 0; tier < state.spec.tiers.size(); ++tier) {
    if (state.spec.tiers[tier].name == spec.tier) job.tier = static_cast<std::uint32_t>(tier);
  }
  deadline_.reset();
  end(job, Fate::refused, now);
  add_reason(error.context.empty() ? "refused" : "refused: " + error.context, error.message,
             spec.name);
}

void Tally::add_reason(const std::string& reason, const std::string& detail,
                       const std::string& name) {
  NeverStarted& known = reasons_[reason];
  if (known.jobs++ > 0) return;
  known.reason = reason;
  known.detail = detail;
  known.example = name;
}

// ---- services --------------------------------------------------------------------------------

void Tally::settle(Service& service, Time now) {
  const std::int64_t us = (now - service.mark).value;
  const std::int64_t served = std::min(service.load_milli, service.capacity_milli);
  service.load += Series::Wide{service.load_milli} * us;
  service.served += Series::Wide{served} * us;
  service.held += Series::Wide{service.replicas} * us;
  if (served < service.load_milli) service.short_us += us;
  service.mark = now;
}

Tally::Service& Tally::service_at(const PoolState& state, ServiceId id, Time now) {
  while (services_.size() <= id.value) {
    Service& added = services_.emplace_back();
    added.name = state.services[services_.size() - 1].spec.name;
    added.mark = now;
  }
  settle(services_[id.value], now);
  return services_[id.value];
}

void Tally::load_changed(const PoolState& state, Time now, ServiceId id,
                         std::int64_t in_use_milli) {
  service_at(state, id, now).load_milli = in_use_milli;
}

void Tally::refresh_capacity(const PoolState& state, ServiceId id, Time now) {
  Service& service = service_at(state, id, now);
  service.replicas = service.capacity_milli = 0;
  for (const TaskId replica : state.service(id).replicas) {
    const TaskState& task = state.tasks.at(replica);
    service.replicas += holds_devices(task.phase) ? 1 : 0;
    service.capacity_milli += task.ready && task.phase == Phase::running ? 1'000 : 0;
  }
  service.most_replicas = std::max(service.most_replicas, service.replicas);
}

}  // namespace neap::whatif
