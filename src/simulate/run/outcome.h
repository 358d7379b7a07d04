// What one what-if run came to, in integers: the same run gives the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/units.h"
#include "ledger/account.h"

namespace neap::whatif {

// Of lengths of time in µs; nearest rank.
struct Spread {
  std::int64_t count = 0;
  std::int64_t mean_us = 0;
  std::int64_t p50_us = 0;
  std::int64_t p90_us = 0;
  std::int64_t p99_us = 0;
  std::int64_t max_us = 0;
};
// Takes the values apart.
[[nodiscard]] Spread spread_of(std::vector<std::int64_t>& values);

// The jobs of the whole run, of a tier, or of a team.
struct JobFigures {
  std::int64_t jobs = 0;
  std::int64_t refused = 0;
  std::int64_t started = 0;
  std::int64_t finished = 0;
  std::int64_t failed = 0;
  std::int64_t unfinished = 0;
  Spread wait;                       // from submission to the first start, of those that started
  Spread completion;                 // from submission to the end, of those that finished
  std::int64_t mean_waiting_us = 0;  // all waiting of all jobs, again after preemptions, so far
  std::int64_t preemptions = 0;
  std::int64_t preempted_jobs = 0;
  std::int64_t lost_device_us = 0;  // work lost, in device-µs
  std::int64_t held_device_us = 0;  // devices held, in device-µs
  std::int64_t with_deadline = 0;
  std::int64_t deadlines_met = 0;
};

struct ServiceFigures {
  std::string name;
  std::int64_t mean_replicas_milli = 0;  // holding devices
  std::int64_t most_replicas = 0;
  // Of the load, in ppm: what ready replicas could take of it.
  std::int64_t served_ppm = 0;
  std::int64_t short_us = 0;  // time in which ready replicas were too few
};

// Jobs that never started, and why.
struct NeverStarted {
  std::string reason;   // a word
  std::string detail;   // of the first of them, a sentence
  std::string example;  // its name
  std::int64_t jobs = 0;
};

// Means over spans of equal length; the last span may be cut short by the end.
struct Curves {
  std::int64_t span_us = 0;
  std::vector<std::string> tiers;                // heaviest first
  std::vector<std::vector<std::int64_t>> use;    // milli-GPU held, by tier
  std::vector<std::int64_t> fragmented;          // milli-GPU free on nodes that are partly used
  std::vector<std::int64_t> waiting_jobs_milli;  // thousandths of a job
  std::vector<std::int64_t> waiting_milli;       // milli-GPU asked for by those that wait
};

struct Outcome {
  std::string policy;
  std::uint64_t seed = 0;
  std::int64_t devices = 0;
  std::int64_t nodes = 0;
  std::int64_t passed_over = 0;  // rows of the workload that ask for no device, or say too little
  // From the first arrival; in µs since midnight before it.
  std::int64_t begin_us = 0;
  std::int64_t last_arrival_us = 0;
  std::int64_t end_us = 0;
  bool cut_off = false;  // by --until

  JobFigures all;
  std::map<std::string, JobFigures> tiers;
  std::map<std::string, JobFigures> teams;
  std::vector<ServiceFigures> services;
  std::vector<NeverStarted> never_started;

  // In millionths of the device time from begin to end.
  std::int64_t allocated_ppm = 0;
  std::int64_t allocated_while_arriving_ppm = 0;  // up to the last job that came
  std::int64_t effective_ppm = 0;
  std::int64_t fragmented_ppm = 0;  // free on partly used nodes
  std::array<std::int64_t, ledger::category_count> by_category_ppm{};

  std::int64_t events = 0;
  std::int64_t decisions = 0;
  std::uint64_t state_hash = 0;
  Curves curves;
  std::vector<std::int64_t> wait_quantiles_us;  // 0 %, 1 % .. 100 %
};

}  // namespace neap::whatif
