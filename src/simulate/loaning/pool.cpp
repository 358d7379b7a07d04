#include "simulate/loaning/pool.h"

#include <algorithm>
#include <utility>

#include "simulate/loaning/simulation.h"

namespace neap::loaning {

Pool::Pool(const Workload& workload, const Policy& policy, std::int32_t devices)
    : workload_(workload),
      policy_(policy),
      nodes_({devices, workload.peak()}, policy.place),
      score_(workload, devices),
      jobs_(workload.jobs.size()) {
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    ahead_.push({workload.jobs[i].arrival_s, Kind::arrival, static_cast<std::int32_t>(i), 0});
  }
  ahead_.push({0, Kind::look, 0, 0});
}

Outcome Pool::run() {
  open_replicas();
  while (!ahead_.empty() && (score_.open() > 0 || now_s_ < scored_to_s)) {
    now_s_ = ahead_.top().at_s;
    while (!ahead_.empty() && ahead_.top().at_s == now_s_) {
      const Happening happening = ahead_.top();
      ahead_.pop();
      handle(happening);
    }
    // Devices that were freed for inference are its own before anybody else sees them.
    while (live_ < wanted_ && start_replica()) {
    }
    if (std::exchange(changed_, false)) schedule();
  }
  return score_.outcome();
}

void Pool::handle(const Happening& happening) {
  switch (happening.kind) {
    case Kind::job_end:
      if (jobs_[static_cast<std::size_t>(happening.id)].generation == happening.generation) {
        end_job(happening.id);
      }
      return;
    case Kind::released:
      release(happening.id);
      return;
    case Kind::replica_ready:
      if (replicas_[static_cast<std::size_t>(happening.id)].generation == happening.generation) {
        replica_is_ready(happening.id);
      }
      return;
    case Kind::drained:
      replica_has_gone(happening.id);
      return;
    case Kind::arrival:
      waiting_.emplace(now_s_, happening.id);
      jobs_[static_cast<std::size_t>(happening.id)].queued_at_s = now_s_;
      changed_ = true;
      return;
    case Kind::look:
      look();
      return;
  }
}

void Pool::end_job(std::int32_t id) {
  JobRun& run = jobs_[static_cast<std::size_t>(id)];
  const auto index = static_cast<std::size_t>(id);
  score_.worked(index, {static_cast<double>(run.work_from_s), static_cast<double>(now_s_)});
  score_.finished(index, {static_cast<double>(run.first_start_s), static_cast<double>(run.waited_s),
                          static_cast<double>(now_s_)});
  running_.erase({run.estimated_end_s, id});
  for (const Part& part : run.parts) nodes_.give(part);
  run.parts.clear();
  ++run.generation;
  changed_ = true;
}

std::int32_t Pool::lendable_part(const JobRun& run) const {
  std::int32_t sum = 0;
  for (const Part& part : run.parts) {
    if (part.node >= nodes_.first_lendable()) sum += part.devices;
  }
  return sum;
}

// Work of this start that survives if it has to leave now.
std::int64_t Pool::kept_of(std::int32_t id) const {
  const JobRun& run = jobs_[static_cast<std::size_t>(id)];
  const std::int64_t worked_s = std::max<std::int64_t>(0, now_s_ - run.work_from_s);
  if (policy_.leave != Policy::Leave::killed) return worked_s;
  const std::int64_t phase_s = workload_.jobs[static_cast<std::size_t>(id)].phase_s;
  if (worked_s < phase_s) return 0;
  return phase_s + (worked_s - phase_s) / interval_s * interval_s;
}

void Pool::stop(std::int32_t id) {
  JobRun& run = jobs_[static_cast<std::size_t>(id)];
  const double devices = workload_.jobs[static_cast<std::size_t>(id)].devices;
  const auto now_s = static_cast<double>(now_s_);
  const std::int64_t kept_s = kept_of(id);
  const std::int64_t worked_s = std::max<std::int64_t>(0, now_s_ - run.work_from_s);
  score_.worked(static_cast<std::size_t>(id), {static_cast<double>(run.work_from_s),
                                               static_cast<double>(run.work_from_s + kept_s)});
  score_.lost(now_s, static_cast<double>(worked_s - kept_s) * devices);
  score_.preempted(now_s);
  run.done_s += kept_s;
  running_.erase({run.estimated_end_s, id});
  ++run.generation;
  coming_ += lendable_part(run);
  std::int64_t until_free_s = 0;
  if (policy_.leave == Policy::Leave::killed) until_free_s = kill_s;
  if (policy_.leave == Policy::Leave::on_demand) until_free_s = on_demand_s;
  score_.switching(now_s, static_cast<double>(until_free_s) * devices);
  if (until_free_s == 0) {
    release(id);
  } else {
    ahead_.push({now_s_ + until_free_s, Kind::released, id, 0});
  }
}

void Pool::release(std::int32_t id) {
  JobRun& run = jobs_[static_cast<std::size_t>(id)];
  coming_ -= lendable_part(run);
  for (const Part& part : run.parts) nodes_.give(part);
  run.parts.clear();
  run.queued_at_s = now_s_;
  waiting_.emplace(workload_.jobs[static_cast<std::size_t>(id)].arrival_s, id);
  changed_ = true;
}

Outcome simulate(const Workload& workload, const Policy& policy, std::int32_t devices) {
  return Pool(workload, policy, devices).run();
}

}  // namespace neap::loaning
