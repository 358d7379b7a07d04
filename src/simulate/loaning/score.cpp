#include "simulate/loaning/score.h"

#include <algorithm>
#include <cmath>

namespace neap::loaning {

namespace {

constexpr double scored_s = scored_to_s - scored_from_s;
constexpr double minute_s = 60;

double overlap(Score::Span span) {
  return std::max(
      0.0, std::min(span.to_s, double{scored_to_s}) - std::max(span.from_s, double{scored_from_s}));
}

// Nearest rank.
double quantile(std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Score::Score(const Workload& workload, std::int32_t devices)
    : workload_(workload), devices_(devices) {
  for (const Job& job : workload.jobs) jobs_ += is_scored(static_cast<double>(job.arrival_s));
  open_ = jobs_;
}

void Score::worked(std::size_t job, Span span) {
  useful_s_ += overlap(span) * workload_.jobs[job].devices;
}

void Score::lost(double at_s, double device_s) {
  if (is_scored(at_s)) lost_s_ += device_s;
}

void Score::switching(double at_s, double device_s) {
  if (is_scored(at_s)) switching_s_ += device_s;
}

void Score::preempted(double at_s) { preemptions_ += is_scored(at_s); }

void Score::replica_switched(double at_s) { switches_ += is_scored(at_s); }

void Score::replicas(double at_s, Replicas replicas) {
  settle(at_s);
  now_ = replicas;
  keep_ready(at_s);
}

// What is ready when the scored days begin counts as a change at their beginning.
void Score::keep_ready(double at_s) {
  if (at_s >= double{scored_to_s}) return;
  const double from_s = std::max(at_s, double{scored_from_s});
  if (!ready_.empty() && ready_.back().at_s == from_s) ready_.pop_back();
  if (!ready_.empty() && ready_.back().ready == now_.ready) return;
  ready_.push_back({from_s, now_.ready});
}

// Minute by minute, as the demand has it.
void Score::settle(double to_s) {
  mark_s_ = std::min(std::max(mark_s_, double{scored_from_s}), std::max(mark_s_, to_s));
  const double end_s = std::min(to_s, double{scored_to_s});
  while (mark_s_ < end_s) {
    const auto minute = static_cast<std::int64_t>(mark_s_ / minute_s);
    const double next_s = std::min(end_s, static_cast<double>(minute + 1) * minute_s);
    const double asked =
        static_cast<double>(workload_.demand_at(minute * 60)) / double{demand_unit};
    const double length_s = next_s - mark_s_;
    asked_s_ += asked * length_s;
    served_s_ += std::min<double>(asked, now_.ready) * length_s;
    held_s_ += now_.held * length_s;
    if (asked > now_.ready && minute != last_short_) {
      last_short_ = minute;
      ++short_minutes_;
    }
    mark_s_ = next_s;
  }
  mark_s_ = std::max(mark_s_, to_s);
}

void Score::finished(std::size_t job, const JobTimes& times) {
  const auto arrival_s = static_cast<double>(workload_.jobs[job].arrival_s);
  if (!is_scored(arrival_s)) return;
  --open_;
  waits_.push_back(times.waited_s);
  first_wait_s_ += times.first_start_s - arrival_s;
  completion_s_ += times.end_s - arrival_s;
}

Outcome Score::outcome() {
  settle(double{scored_to_s});
  Outcome outcome;
  outcome.jobs = jobs_;
  outcome.unfinished = open_;
  const double done = std::max<double>(1, static_cast<double>(waits_.size()));
  double sum = 0;
  for (const double wait : waits_) sum += wait;
  outcome.wait_s = sum / done;
  outcome.first_wait_s = first_wait_s_ / done;
  outcome.completion_s = completion_s_ / done;
  std::sort(waits_.begin(), waits_.end());
  outcome.wait_p50_s = quantile(waits_, 0.5);
  outcome.wait_p99_s = quantile(waits_, 0.99);
  const double provisioned_s = devices_ * scored_s;
  outcome.training_used = useful_s_ / provisioned_s;
  outcome.effective = (useful_s_ + served_s_) / provisioned_s;
  outcome.held_replicas = held_s_ / scored_s;
  outcome.preemptions = static_cast<double>(preemptions_);
  outcome.lost_device_h = lost_s_ / 3'600;
  outcome.short_slots = static_cast<double>(short_minutes_) * minute_s / scored_s;
  outcome.short_requests = asked_s_ > 0 ? (asked_s_ - served_s_) / asked_s_ : 0;
  outcome.switches = static_cast<double>(switches_);
  outcome.overhead = switching_s_ / provisioned_s;
  outcome.ready = ready_;
  return outcome;
}

}  // namespace neap::loaning
