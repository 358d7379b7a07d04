#include "simulate/run/loaning/witness.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "simulate/loaning/simulation.h"

namespace neap::whatif {

namespace {

// A run begins on its second day (driver.cpp).
constexpr std::int64_t begin_us = loaning::day_s * 1'000'000;
constexpr std::size_t name_prefix = 4;  // "job-"
constexpr std::int32_t code_yielded = 75;

double seconds_of(Time at) { return static_cast<double>(at.us - begin_us) / 1e6; }

}  // namespace

Witness::Witness(const loaning::Workload& workload, const EngineRun& run)
    : workload_(workload),
      saves_(run.saves),
      score_(workload, run.devices),
      jobs_(workload.jobs.size()) {}

Witness::Held* Witness::find(AllocationId allocation) {
  const auto found = held_.find(allocation);
  return found == held_.end() ? nullptr : &found->second;
}

void Witness::note(Time now, const Event& event, const StepResult& result) {
  now_s_ = seconds_of(now);
  if (const auto* submission = std::get_if<TaskSubmitted>(&event)) {
    const std::string& name = submission->spec.name;
    std::from_chars(name.data() + name_prefix, name.data() + name.size(), submitted_);
    jobs_[static_cast<std::size_t>(submitted_)].queued_at_s = now_s_;
  } else if (const auto* start = std::get_if<TaskStarted>(&event)) {
    started(start->stamp.source);
  } else if (const auto* healthy = std::get_if<ReplicaHealthy>(&event)) {
    if (Held* held = find(healthy->stamp.source)) replica_is(*held, Held::Replica::ready);
  } else if (const auto* checkpoint = std::get_if<CheckpointDurable>(&event)) {
    captured(*checkpoint);
  } else if (const auto* exit = std::get_if<TaskExited>(&event)) {
    exited(exit->stamp.source, exit);
  } else if (const auto* failed = std::get_if<StartFailed>(&event)) {
    exited(failed->stamp.source, nullptr);
  }
  for (const Decision& decision : result.decisions) {
    if (const auto* admitted = std::get_if<TaskAdmitted>(&decision)) {
      if (job_of_task_.size() <= admitted->task.value) {
        job_of_task_.resize(admitted->task.value + 1, -1);
      }
      job_of_task_[admitted->task.value] = std::exchange(submitted_, -1);
    } else if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
      note(*placed);
    } else if (const auto* yield = std::get_if<YieldAsked>(&decision)) {
      asked(yield->allocation);
    } else if (const auto* withdrawn = std::get_if<YieldWithdrawn>(&decision)) {
      if (Held* held = find(withdrawn->allocation)) held->asked_at_s = -1;
    } else if (const auto* stop = std::get_if<StopAsked>(&decision)) {
      asked(stop->allocation);
    } else if (const auto* kill = std::get_if<KillAsked>(&decision)) {
      asked(kill->allocation);
    }
  }
}

void Witness::note(const TaskPlaced& placed) {
  Held& held = held_[placed.allocation];
  const std::int32_t index =
      placed.task.value < job_of_task_.size() ? job_of_task_[placed.task.value] : -1;
  if (index < 0) {
    held.by = Held::By::replica;
    ++held_replicas_;
    score_.replica_switched(now_s_);
    score_.switching(now_s_, double{loaning::load_s});
    tell_replicas();
    return;
  }
  held.by = Held::By::job;
  held.job = static_cast<std::size_t>(index);
  Job& job = jobs_[held.job];
  job.waited_s += now_s_ - job.queued_at_s;
  job.work_from_s = -1;
}

void Witness::started(AllocationId allocation) {
  const Held* held = find(allocation);
  if (held == nullptr || held->by != Held::By::job) return;
  Job& job = jobs_[held->job];
  const loaning::Job& spec = workload_.jobs[held->job];
  const bool again = job.first_start_s >= 0;
  if (!again) job.first_start_s = now_s_;
  const auto restore_s = static_cast<double>(again ? spec.restore_s : 0);
  score_.switching(now_s_, restore_s * spec.devices);
  job.work_from_s = job.kept_to_s = now_s_ + restore_s;
}

void Witness::captured(const CheckpointDurable& checkpoint) {
  const Held* held = find(checkpoint.stamp.source);
  if (held == nullptr || held->by != Held::By::job) return;
  Job& job = jobs_[held->job];
  job.kept_to_s = std::max(job.kept_to_s, seconds_of(checkpoint.captured));
}

void Witness::asked(AllocationId allocation) {
  Held* held = find(allocation);
  if (held == nullptr) return;
  if (held->asked_at_s < 0) held->asked_at_s = now_s_;
  if (held->by == Held::By::replica && held->replica != Held::Replica::leaving) {
    score_.replica_switched(now_s_);
    score_.switching(now_s_, double{loaning::drain_s});
    replica_is(*held, Held::Replica::leaving);
  }
}

void Witness::replica_is(Held& held, Held::Replica state) {
  if (held.by != Held::By::replica || held.replica == Held::Replica::leaving) return;
  if (held.replica == Held::Replica::ready) --ready_replicas_;
  if (state == Held::Replica::ready) ++ready_replicas_;
  held.replica = state;
  tell_replicas();
}

void Witness::exited(AllocationId allocation, const TaskExited* exit) {
  Held* held = find(allocation);
  if (held == nullptr) return;
  if (held->by == Held::By::replica) {
    replica_is(*held, Held::Replica::leaving);
    --held_replicas_;
    tell_replicas();
    held_.erase(allocation);
    return;
  }
  Job& job = jobs_[held->job];
  // Who only knows signals has saved all that it did until it got one, and says so by its code.
  if (exit != nullptr && exit->code == code_yielded && saves_ == EngineRun::Saves::on_demand) {
    job.kept_to_s = std::max(job.kept_to_s, held->asked_at_s);
  }
  const bool finished = exit != nullptr && exit->code == 0 && exit->signal == 0;
  if (job.work_from_s >= 0) {
    score_.worked(held->job, {job.work_from_s, finished ? now_s_ : job.kept_to_s});
  }
  if (finished) {
    score_.finished(held->job, {job.first_start_s, job.waited_s, now_s_});
  } else {
    const auto devices = static_cast<double>(workload_.jobs[held->job].devices);
    // At a boundary it works until it has come; then it saves and goes.
    const double left_s = std::max(held->asked_at_s, job.kept_to_s);
    score_.preempted(now_s_);
    score_.switching(now_s_, std::max(0.0, now_s_ - left_s) * devices);
    job.queued_at_s = now_s_;
  }
  held_.erase(allocation);
}

}  // namespace neap::whatif
