// Devices of the region between the service and training, by the policy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "simulate/loaning/pool.h"
#include "simulate/loaning/simulation.h"

namespace neap::loaning {

namespace {

constexpr std::int64_t hour_s = 3'600;
constexpr std::size_t hours_a_day = 24;
constexpr std::size_t days_back = 7;
constexpr std::int64_t save_s = 10;  // of a checkpoint on demand
constexpr double last_resort = 1e12;

std::int32_t whole_devices(double milli) {
  return static_cast<std::int32_t>(std::ceil(milli / double{demand_unit} - 1e-9));
}

}  // namespace

// At first they are all there.
void Pool::open_replicas() {
  const auto& demand = workload_.demand_milli;
  const double mean = static_cast<double>(std::accumulate(demand.begin(), demand.end(), 0LL)) /
                      static_cast<double>(demand.size());
  fixed_target_ = std::min(workload_.peak(), whole_devices(mean * policy_.headroom));
  wanted_ = target();
  while (live_ < wanted_ && start_replica()) {
  }
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    if (replicas_[i].state == Replica::State::loading) {
      replica_is_ready(static_cast<std::int32_t>(i));
      ++replicas_[i].generation;
    }
  }
}

void Pool::look() {
  ahead_.push({now_s_ + 30, Kind::look, 0, 0});
  hour_peak_ = std::max(hour_peak_, workload_.demand_at(now_s_));
  learn_hours();
  if (now_s_ % policy_.every_s != 0) return;
  wanted_ = target();
  while (live_ < wanted_ && start_replica()) {
  }
  if (live_ + coming_ < wanted_) reclaim(wanted_ - live_ - coming_);
  while (live_ < wanted_ && start_replica()) {
  }
  while (live_ > wanted_) drain_replica();
}

void Pool::learn_hours() {
  const auto closed = static_cast<std::size_t>(now_s_ / hour_s);
  if (hour_peaks_.size() >= closed) return;
  hour_peaks_.push_back(hour_peak_);
  hour_peak_ = workload_.demand_at(now_s_);
}

// A quantile of the peaks of this hour on the last days.
std::int32_t Pool::planned_at(std::int64_t at_s) {
  const std::int64_t hour = at_s / hour_s;
  if (hour == planned_hour_) return planned_;
  planned_hour_ = hour;
  std::vector<std::int32_t> same;
  for (std::size_t day = 1; day <= days_back; ++day) {
    const auto back = static_cast<std::int64_t>(day * hours_a_day);
    if (hour < back) break;
    same.push_back(hour_peaks_[static_cast<std::size_t>(hour - back)]);
  }
  planned_ = 0;
  if (same.empty()) return planned_;
  std::sort(same.begin(), same.end());
  const std::size_t rank =
      (same.size() * static_cast<std::size_t>(policy_.plan_per_mille) + 999) / 1'000;
  planned_ = same[std::max<std::size_t>(rank, 1) - 1];
  return planned_;
}

std::int32_t Pool::target() {
  const std::int32_t peak = workload_.peak();
  const double demand = workload_.demand_at(now_s_);
  std::int32_t target = peak;
  switch (policy_.target) {
    case Policy::Target::peak:
      return peak;
    case Policy::Target::fixed:
      return fixed_target_;
    case Policy::Target::tracked:
    case Policy::Target::exact:
      target = whole_devices(demand * policy_.headroom);
      break;
    case Policy::Target::whole_nodes:
      target = (whole_devices(demand * policy_.headroom) + devices_per_node - 1) /
               devices_per_node * devices_per_node;
      break;
    case Policy::Target::planned:
      target = whole_devices(demand * policy_.headroom);
      if (policy_.plan_per_mille > 0) {
        target = std::max(target, whole_devices(planned_at(now_s_)));
      }
      target += static_cast<std::int32_t>(std::ceil(policy_.buffer * peak));
      break;
  }
  target = std::min(peak, target);
  // The highest target of the dwell: smaller ones before a higher one never count again.
  while (!recent_targets_.empty() && recent_targets_.back().second <= target) {
    recent_targets_.pop_back();
  }
  recent_targets_.emplace_back(now_s_, target);
  while (recent_targets_.front().first < now_s_ - policy_.dwell_s) recent_targets_.pop_front();
  return recent_targets_.front().second;
}

bool Pool::start_replica() {
  for (std::int32_t node = nodes_.count() - 1; node >= nodes_.first_lendable(); --node) {
    if (nodes_.free()[static_cast<std::size_t>(node)] == 0) continue;
    nodes_.take({node, 1});
    const auto gone = std::find_if(replicas_.begin(), replicas_.end(), [](const Replica& replica) {
      return replica.state == Replica::State::gone;
    });
    const auto id = static_cast<std::int32_t>(gone - replicas_.begin());
    if (gone == replicas_.end()) replicas_.emplace_back();
    Replica& replica = replicas_[static_cast<std::size_t>(id)];
    replica.node = node;
    replica.state = Replica::State::loading;
    ++replica.generation;
    ++live_;
    ++held_;
    if (policy_.leave == Policy::Leave::free) {
      replica_is_ready(id);
    } else {
      score_.switching(static_cast<double>(now_s_), double{load_s});
      ahead_.push({now_s_ + load_s, Kind::replica_ready, id, replica.generation});
    }
    score_.replica_switched(static_cast<double>(now_s_));
    tell_replicas();
    return true;
  }
  return false;
}

// One that serves nobody yet, then the one on the lowest node: training grows from there.
void Pool::drain_replica() {
  std::int32_t best = -1;
  std::pair<bool, std::int32_t> best_key;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const Replica& replica = replicas_[i];
    const bool ready = replica.state == Replica::State::ready;
    if (!ready && replica.state != Replica::State::loading) continue;
    const std::pair<bool, std::int32_t> key{ready, replica.node};
    if (best >= 0 && key >= best_key) continue;
    best = static_cast<std::int32_t>(i);
    best_key = key;
  }
  Replica& replica = replicas_[static_cast<std::size_t>(best)];
  ready_ -= replica.state == Replica::State::ready ? 1 : 0;
  --live_;
  replica.state = Replica::State::draining;
  ++replica.generation;
  score_.replica_switched(static_cast<double>(now_s_));
  if (policy_.leave == Policy::Leave::free) {
    replica_has_gone(best);
    return;
  }
  score_.switching(static_cast<double>(now_s_), double{drain_s});
  ahead_.push({now_s_ + drain_s, Kind::drained, best, replica.generation});
  tell_replicas();
}

void Pool::replica_is_ready(std::int32_t id) {
  replicas_[static_cast<std::size_t>(id)].state = Replica::State::ready;
  ++ready_;
  tell_replicas();
}

void Pool::replica_has_gone(std::int32_t id) {
  Replica& replica = replicas_[static_cast<std::size_t>(id)];
  replica.state = Replica::State::gone;
  nodes_.give({replica.node, 1});
  --held_;
  changed_ = true;
  tell_replicas();
}

void Pool::tell_replicas() { score_.replicas(static_cast<double>(now_s_), {held_, ready_}); }

void Pool::reclaim(std::int32_t wanted) {
  switch (policy_.victims) {
    case Policy::Victims::youngest:
      reclaim_youngest(wanted);
      return;
    case Policy::Victims::cheapest_node:
      reclaim_nodes(wanted);
      return;
    case Policy::Victims::cheapest:
      reclaim_cheapest(wanted);
      return;
  }
}

void Pool::reclaim_youngest(std::int32_t wanted) {
  std::vector<std::pair<std::int64_t, std::int32_t>> young;
  for (const auto& [end_s, id] : running_) {
    const JobRun& run = jobs_[static_cast<std::size_t>(id)];
    if (lendable_part(run) > 0) young.emplace_back(-run.start_s, -id);
  }
  std::sort(young.begin(), young.end());
  for (const auto& [start_s, id] : young) {
    if (wanted <= 0) return;
    wanted -= lendable_part(jobs_[static_cast<std::size_t>(-id)]);
    stop(-id);
  }
}

// Whole nodes, whose jobs are the fewest; a job counts by the part of its nodes (Lyra, EuroSys 23).
void Pool::reclaim_nodes(std::int32_t wanted) {
  while (wanted > 0) {
    std::vector<double> cost(static_cast<std::size_t>(nodes_.count()), 0);
    std::vector<std::vector<std::int32_t>> tenants(cost.size());
    for (const auto& [end_s, id] : running_) {
      const JobRun& run = jobs_[static_cast<std::size_t>(id)];
      for (const Part& part : run.parts) {
        cost[static_cast<std::size_t>(part.node)] += 1.0 / static_cast<double>(run.parts.size());
        tenants[static_cast<std::size_t>(part.node)].push_back(id);
      }
    }
    std::int32_t best = -1;
    for (std::int32_t node = nodes_.count() - 1; node >= nodes_.first_lendable(); --node) {
      if (tenants[static_cast<std::size_t>(node)].empty()) continue;
      if (best < 0 || cost[static_cast<std::size_t>(node)] < cost[static_cast<std::size_t>(best)]) {
        best = node;
      }
    }
    if (best < 0) return;
    for (const std::int32_t id : tenants[static_cast<std::size_t>(best)]) {
      wanted -= lendable_part(jobs_[static_cast<std::size_t>(id)]);
      stop(id);
    }
  }
}

// The greedy cover by cost a device, then reduced: POLICIES 1 without what does not differ here.
void Pool::reclaim_cheapest(std::int32_t wanted) {
  struct Offer {
    double cost = 0;
    std::int32_t gain = 0;
    std::int32_t id = 0;
  };
  std::vector<Offer> offers;
  for (const auto& [end_s, id] : running_) {
    const Job& job = workload_.jobs[static_cast<std::size_t>(id)];
    const std::int32_t gain = lendable_part(jobs_[static_cast<std::size_t>(id)]);
    if (gain == 0) continue;
    const double each = static_cast<double>(job.restore_s + save_s);
    offers.push_back({job.devices * each + static_cast<double>(policy_.fixed_cost_s) +
                          (job.interactive ? last_resort : 0),
                      gain, id});
  }
  std::sort(offers.begin(), offers.end(), [wanted](const Offer& a, const Offer& b) {
    const double left = a.cost * std::min(b.gain, wanted);
    const double right = b.cost * std::min(a.gain, wanted);
    return left < right || (left == right && a.id > b.id);
  });
  std::vector<Offer> chosen;
  std::int32_t gained = 0;
  for (const Offer& offer : offers) {
    if (gained >= wanted) break;
    gained += offer.gain;
    chosen.push_back(offer);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Offer& a, const Offer& b) { return a.cost > b.cost; });
  for (const Offer& offer : chosen) {
    if (gained - offer.gain >= wanted) {
      gained -= offer.gain;
      continue;
    }
    stop(offer.id);
  }
}

}  // namespace neap::loaning
