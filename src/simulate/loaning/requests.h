// Requests of the lending experiment's service, one by one, on the replicas that a policy kept
// ready: what its users felt, while its devices were lent.
//
// All replicas take from one queue, first come first served, as behind the pool's proxy; each
// works on `slots` requests at once. A request takes
//
//   (input + decode_cost * output) * unit * (1 + (slowest - 1) * busy) / slowest
//
// where `busy` is the part of all slots in use when it begins, and `unit` makes a full replica
// serve `per_device` requests a second in the mean: a token is slower on a full replica than on
// an idle one. The first byte comes after the queue and the input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "measure/histogram.h"
#include "simulate/loaning/score.h"
#include "simulate/loaning/workload.h"
#include "trace/requests.h"

namespace neap::loaning {

struct ReplayOptions {
  std::int32_t slots = 16;
  double per_device = 18.7;  // requests a second
  double decode_cost = 30;   // an output token, in input tokens
  double slowest = 2;        // time of a token on a full replica, in that on an idle one
  double patience_s = 60;    // after so long in the queue a request fails
  // A window of `window_s` in each `every_s`, after `warm_s` that do not count.
  std::int64_t every_s = 13'800, window_s = 600, warm_s = 60;
  std::uint64_t seed = 1;
};

struct Latencies {
  measure::Histogram first_byte, total;
  std::uint64_t requests = 0, expired = 0;

  void merge(const Latencies& other);
};

struct Replayed {
  Latencies all;    // of all windows
  Latencies worst;  // of the window whose p99 of the first byte is the longest
};

// `lengths` are drawn from at random; not empty. `ready` as in Outcome.
[[nodiscard]] Replayed replay_requests(const Workload& workload, std::span<const ReadyChange> ready,
                                       std::span<const trace::Request> lengths,
                                       const ReplayOptions& options);

}  // namespace neap::loaning
