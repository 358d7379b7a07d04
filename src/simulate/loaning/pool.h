// The state of a run of the lending experiment: jobs that wait and run, replicas, devices, events
// to come. backfill.cpp starts jobs, inference.cpp moves devices between the two.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "simulate/loaning/nodes.h"
#include "simulate/loaning/policy.h"
#include "simulate/loaning/score.h"
#include "simulate/loaning/workload.h"

namespace neap::loaning {

class Pool {
 public:
  Pool(const Workload& workload, const Policy& policy, std::int32_t devices);
  Outcome run();

 private:
  struct JobRun {
    std::int64_t done_s = 0;  // work that is safe
    std::int64_t start_s = -1, work_from_s = 0;
    std::int64_t first_start_s = -1;
    std::int64_t queued_at_s = 0, waited_s = 0;
    std::int64_t estimated_end_s = 0;
    std::int32_t generation = 0;  // events of an earlier start count no more
    std::vector<Part> parts;      // devices that it holds
  };
  struct Replica {
    std::int32_t node = 0;
    enum class State : std::uint8_t { gone, loading, ready, draining } state = State::gone;
    std::int32_t generation = 0;
  };
  // In the order in which they happen at one time.
  enum class Kind : std::uint8_t { job_end, released, replica_ready, drained, arrival, look };
  struct Happening {
    std::int64_t at_s = 0;
    Kind kind{};
    std::int32_t id = 0;
    std::int32_t generation = 0;
    auto operator<=>(const Happening&) const = default;
  };

  void handle(const Happening& happening);
  void end_job(std::int32_t id);
  void release(std::int32_t id);
  void stop(std::int32_t id);
  [[nodiscard]] std::int32_t lendable_part(const JobRun& run) const;
  [[nodiscard]] std::int64_t kept_of(std::int32_t id) const;

  // inference.cpp
  void open_replicas();
  void look();
  [[nodiscard]] std::int32_t target();
  [[nodiscard]] std::int32_t planned_at(std::int64_t at_s);
  void learn_hours();
  bool start_replica();
  void drain_replica();
  void replica_is_ready(std::int32_t id);
  void replica_has_gone(std::int32_t id);
  void tell_replicas();
  void reclaim(std::int32_t wanted);
  void reclaim_youngest(std::int32_t wanted);
  void reclaim_nodes(std::int32_t wanted);
  void reclaim_cheapest(std::int32_t wanted);

  // backfill.cpp
  void schedule();
  void start(std::int32_t id, std::vector<Part> parts);
  [[nodiscard]] std::int64_t estimated_end(std::int32_t id) const;
  struct Reservation {
    std::int64_t at_s = 0;
    std::vector<std::int32_t> extra;  // free beside it when its time has come
  };
  [[nodiscard]] Reservation reserve(std::int32_t id) const;
  void backfill(Reservation reservation);

  const Workload& workload_;
  const Policy policy_;
  Nodes nodes_;
  Score score_;
  std::int64_t now_s_ = 0;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> ahead_;
  std::vector<JobRun> jobs_;
  std::set<std::pair<std::int64_t, std::int32_t>> waiting_;  // by arrival
  std::set<std::pair<std::int64_t, std::int32_t>> running_;  // by estimated end
  bool changed_ = false;  // something came, or devices became free

  std::vector<Replica> replicas_;
  std::int32_t live_ = 0, ready_ = 0, held_ = 0;
  std::int32_t wanted_ = 0;
  std::int32_t fixed_target_ = 0;         // of a split that never changes
  std::int32_t coming_ = 0;               // devices of the region whose jobs are leaving
  std::vector<std::int32_t> hour_peaks_;  // of closed hours
  std::int32_t hour_peak_ = 0;
  std::int64_t planned_hour_ = -1;
  std::int32_t planned_ = 0;
  std::deque<std::pair<std::int64_t, std::int32_t>> recent_targets_;
};

}  // namespace neap::loaning
