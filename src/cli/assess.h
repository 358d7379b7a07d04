// neap assess, neap compare: what sharing would gain, and what it has gained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/value.h"
#include "core/model/result.h"
#include "simulate/assess/three_numbers.h"

namespace neap::cli {

struct AssessOptions {
  std::string journal;   // of this pool; or both of
  std::string training;  // files: time,devices
  std::string inference;
  std::string slot = "10min";
  std::int64_t training_devices = 0;
  std::int64_t inference_devices = 0;
  std::string interruptible = "100%";
  std::string reserve = "10%";
  std::string lead = "10min";
  std::string switch_cost = "5min";
  std::string most_delay = "1d";
  bool json = false;
};
int assess(const Context& context, const AssessOptions& options);

struct CompareOptions {
  std::string before;
  std::string after;
  bool json = false;
};
// 0: no number is worse; 1: one is, or nothing has changed.
int compare(const Context& context, const CompareOptions& options);

// From `neap usage --json`, from a run of `neap simulate --json`, or written by hand:
// {"effective_utilisation_ppm", "mean_wait_us", "services": [{"name", "p95_us", "p99_us"}]}.
[[nodiscard]] Result<assess::ThreeNumbers> three_numbers(const Value& document);

// A service with the answer to /v1/services/NAME/latency.
struct NamedReport {
  std::string name;
  Value latency;
};
// The answer to /v1/usage with the member "services" that three_numbers() reads.
[[nodiscard]] std::string with_latencies(std::string usage,
                                         const std::vector<NamedReport>& reports);

}  // namespace neap::cli
