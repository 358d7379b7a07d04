// EASY backfill (Lifka 1995): the first that waits has a reservation by the estimates of those that
// run; others may pass it where they do not delay it.
#include <algorithm>
#include <array>
#include <bitset>
#include <utility>

#include "simulate/loaning/pool.h"
#include "simulate/loaning/simulation.h"

namespace neap::loaning {

namespace {

// An estimate that has run out says: soon.
constexpr std::int64_t soon_s = 60;

// How many nodes have how much free: whether a job fits, as nodes become free one by one.
class Counts {
 public:
  explicit Counts(std::vector<std::int32_t> free) : free_(std::move(free)) {
    for (const std::int32_t each : free_) ++nodes_[static_cast<std::size_t>(each)];
  }
  void give(Part part) {
    std::int32_t& free = free_[static_cast<std::size_t>(part.node)];
    --nodes_[static_cast<std::size_t>(free)];
    free += part.devices;
    ++nodes_[static_cast<std::size_t>(free)];
  }
  [[nodiscard]] bool fits(std::int32_t devices) const {
    const std::int32_t whole = devices > devices_per_node ? devices / devices_per_node : 0;
    const std::int32_t rest = devices - whole * devices_per_node;
    if (nodes_[devices_per_node] < whole) return false;
    if (rest == 0) return true;
    std::int32_t others = nodes_[devices_per_node] - whole;
    for (std::int32_t free = rest; free < devices_per_node; ++free) {
      others += nodes_[static_cast<std::size_t>(free)];
    }
    return others > 0;
  }
  [[nodiscard]] std::vector<std::int32_t>& free() { return free_; }

 private:
  std::vector<std::int32_t> free_;
  std::array<std::int32_t, devices_per_node + 1> nodes_{};
};

}  // namespace

std::int64_t Pool::estimated_end(std::int32_t id) const {
  const JobRun& run = jobs_[static_cast<std::size_t>(id)];
  const Job& job = workload_.jobs[static_cast<std::size_t>(id)];
  const bool again = run.first_start_s >= 0 && policy_.leave != Policy::Leave::free;
  return now_s_ + (again ? job.restore_s : 0) +
         std::max<std::int64_t>(1, job.estimate_s - run.done_s);
}

void Pool::start(std::int32_t id, std::vector<Part> parts) {
  JobRun& run = jobs_[static_cast<std::size_t>(id)];
  const Job& job = workload_.jobs[static_cast<std::size_t>(id)];
  run.estimated_end_s = estimated_end(id);
  const bool again = run.first_start_s >= 0 && policy_.leave != Policy::Leave::free;
  const std::int64_t restore_s = again ? job.restore_s : 0;
  score_.switching(static_cast<double>(now_s_), static_cast<double>(restore_s * job.devices));
  run.waited_s += now_s_ - run.queued_at_s;
  run.start_s = now_s_;
  run.work_from_s = now_s_ + restore_s;
  if (run.first_start_s < 0) run.first_start_s = now_s_;
  for (const Part& part : parts) nodes_.take(part);
  run.parts = std::move(parts);
  running_.emplace(run.estimated_end_s, id);
  waiting_.erase({job.arrival_s, id});
  ahead_.push({run.work_from_s + job.duration_s - run.done_s, Kind::job_end, id, run.generation});
}

void Pool::schedule() {
  while (!waiting_.empty()) {
    const std::int32_t id = waiting_.begin()->second;
    std::vector<Part> parts = nodes_.find(workload_.jobs[static_cast<std::size_t>(id)].devices);
    if (parts.empty()) break;
    start(id, std::move(parts));
  }
  if (waiting_.size() < 2 || nodes_.free_in_all() == 0) return;
  backfill(reserve(waiting_.begin()->second));
}

Pool::Reservation Pool::reserve(std::int32_t id) const {
  const std::int32_t devices = workload_.jobs[static_cast<std::size_t>(id)].devices;
  Counts counts(nodes_.free());
  Reservation reservation;
  for (const auto& [end_s, other] : running_) {
    for (const Part& part : jobs_[static_cast<std::size_t>(other)].parts) counts.give(part);
    reservation.at_s = std::max(end_s, now_s_ + soon_s);
    if (counts.fits(devices)) break;
  }
  reservation.extra = std::move(counts.free());
  for (const Part& part : nodes_.find_in(reservation.extra, devices)) {
    reservation.extra[static_cast<std::size_t>(part.node)] -= part.devices;
  }
  return reservation;
}

void Pool::backfill(Reservation reservation) {
  // What did not fit once does not fit later in the same pass.
  std::array<std::bitset<1'024>, 2> failed;
  std::vector<std::int32_t> candidates;
  for (auto at = std::next(waiting_.begin()); at != waiting_.end(); ++at) {
    if (candidates.size() == backfill_depth) break;
    candidates.push_back(at->second);
  }
  for (const std::int32_t id : candidates) {
    if (nodes_.free_in_all() == 0) return;
    const auto devices = workload_.jobs[static_cast<std::size_t>(id)].devices;
    const bool in_time =
        policy_.queue == Policy::Queue::greedy || estimated_end(id) <= reservation.at_s;
    if (failed[in_time ? 1 : 0].test(static_cast<std::size_t>(devices))) continue;
    std::vector<Part> parts;
    if (in_time) {
      parts = nodes_.find(devices);
    } else if (devices <= nodes_.free_in_all()) {
      std::vector<std::int32_t> least = nodes_.free();
      for (std::size_t node = 0; node < least.size(); ++node) {
        least[node] = std::min(least[node], reservation.extra[node]);
      }
      parts = nodes_.find_in(least, devices);
      for (const Part& part : parts) {
        reservation.extra[static_cast<std::size_t>(part.node)] -= part.devices;
      }
    }
    if (parts.empty()) {
      failed[in_time ? 1 : 0].set(static_cast<std::size_t>(devices));
    } else {
      start(id, std::move(parts));
    }
  }
}

}  // namespace neap::loaning
