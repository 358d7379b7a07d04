// What one run of the lending experiment came to. The reference policies and the engine are scored
// by the same code. Times are seconds from the start of the workload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulate/loaning/workload.h"

namespace neap::loaning {

// From this moment on so many replicas are ready.
struct ReadyChange {
  double at_s = 0;
  std::int32_t ready = 0;
};

struct Outcome {
  std::int64_t jobs = 0;        // scored
  std::int64_t unfinished = 0;  // of them
  double wait_s = 0;            // mean of all waiting, again after preemptions
  double first_wait_s = 0;      // mean until the first start
  double wait_p50_s = 0, wait_p99_s = 0;
  double completion_s = 0;         // mean, from arrival to the end
  double effective = 0;            // useful / provisioned device time (POLICIES 7)
  double training_used = 0;        // useful training device time / provisioned
  double held_replicas = 0;        // mean of devices that inference holds
  double preemptions = 0;          // in the scored days
  double lost_device_h = 0;        // work done again
  double short_slots = 0;          // part of the minutes in which replicas were too few
  double short_requests = 0;       // part of the requests that came then and found no replica
  double switches = 0;             // replicas started and ended
  double overhead = 0;             // loads, drains, releases and restores / provisioned device time
  std::vector<ReadyChange> ready;  // over the scored days, in the order of time
};

class Score {
 public:
  Score(const Workload& workload, std::int32_t devices);

  struct Span {
    double from_s = 0, to_s = 0;
  };
  // Work that is kept; device time that is lost, or goes into switching.
  void worked(std::size_t job, Span span);
  void lost(double at_s, double device_s);
  void switching(double at_s, double device_s);
  void preempted(double at_s);
  void replica_switched(double at_s);
  // From now on; never back in time.
  struct Replicas {
    std::int32_t held = 0, ready = 0;
  };
  void replicas(double at_s, Replicas replicas);

  struct JobTimes {
    double first_start_s = 0, waited_s = 0, end_s = 0;
  };
  void finished(std::size_t job, const JobTimes& times);
  // Jobs of the scored days that have not finished.
  [[nodiscard]] std::int64_t open() const { return open_; }
  [[nodiscard]] Outcome outcome();

 private:
  [[nodiscard]] static bool is_scored(double at_s) {
    return at_s >= double{scored_from_s} && at_s < double{scored_to_s};
  }
  void settle(double to_s);
  void keep_ready(double at_s);

  const Workload& workload_;
  double devices_;
  std::vector<double> waits_;
  std::int64_t jobs_ = 0, open_ = 0;
  double first_wait_s_ = 0, completion_s_ = 0;
  double useful_s_ = 0, served_s_ = 0, asked_s_ = 0, held_s_ = 0;
  double lost_s_ = 0, switching_s_ = 0;
  std::int64_t preemptions_ = 0, switches_ = 0, short_minutes_ = 0;
  std::int64_t last_short_ = -1;  // minute
  Replicas now_;
  std::vector<ReadyChange> ready_;
  double mark_s_ = 0;
};

}  // namespace neap::loaning
