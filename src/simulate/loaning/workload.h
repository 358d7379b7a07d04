// The workload of the lending experiment: recorded jobs in blocks, recorded traffic scaled to a
// peak. One seed is one workload, the same to all policies. Times are whole seconds from the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "trace/jobs.h"
#include "trace/rates.h"
#include "trace/requests.h"

namespace neap::loaning {

inline constexpr std::int64_t day_s = 86'400;
inline constexpr std::int64_t span_days = 28;
inline constexpr std::int64_t span_s = span_days * day_s;
// Jobs that arrive in these days are scored, and device time in them.
inline constexpr std::int64_t scored_from_s = 7 * day_s;
inline constexpr std::int64_t scored_to_s = 21 * day_s;
inline constexpr std::int64_t interval_s = 600;  // between checkpoints
inline constexpr std::int32_t devices_per_node = 8;
inline constexpr std::int64_t demand_unit = 1'000;  // of a device

struct Job {
  std::int64_t arrival_s = 0;
  std::int64_t duration_s = 0;
  std::int64_t estimate_s = 0;  // what backfill believes
  std::int64_t phase_s = 0;     // of its checkpoints, after it begins to work
  std::int64_t restore_s = 0;
  std::int32_t devices = 1;
  bool interactive = false;
};

enum class TrafficShape : std::uint8_t {
  recorded,  // mean / peak 0.3
  broad,     // drawn, mean / peak 0.5: a day curve without a spike
  flat,      // always the peak: nothing can be lent
};

struct WorkloadSpec {
  std::int32_t nodes = 64;  // of two clusters, sized to the observed peak
  double inference_part = 0.40625;
  double load = 0.85;  // of the training cluster
  std::int32_t largest_gang = 128;
  TrafficShape traffic = TrafficShape::recorded;
  std::uint64_t seed = 1;
};

struct Workload {
  std::vector<Job> jobs;  // in the order of arrival
  // Thousandths of a device asked for by inference, minute by minute, over the whole span.
  std::vector<std::int32_t> demand_milli;
  std::int32_t nodes = 0;            // two clusters: training
  std::int32_t inference_nodes = 0;  // and inference, the observed peak

  [[nodiscard]] std::int32_t peak() const { return inference_nodes * devices_per_node; }
  // After the span it stays as it was last.
  [[nodiscard]] std::int32_t demand_at(std::int64_t at_s) const {
    const auto minute = static_cast<std::size_t>(at_s / 60);
    return demand_milli[std::min(minute, demand_milli.size() - 1)];
  }
};

struct Recorded {
  std::vector<trace::Job> jobs;            // Philly
  std::vector<trace::RateWindow> traffic;  // ServeGen
};

// `folder` is that of the traces.
[[nodiscard]] Result<Recorded> read_recorded(const std::string& folder);
// Of Azure's conversations.
[[nodiscard]] Result<std::vector<trace::Request>> read_requests(const std::string& folder);
[[nodiscard]] Workload make_workload(const Recorded& recorded, const WorkloadSpec& spec);

}  // namespace neap::loaning
