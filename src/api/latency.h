// What the requests of a service were, as the API shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/view.h"

namespace neap::api {

struct TimesRow {  // within 1 %
  std::int64_t count = 0;
  std::int64_t p50_us = unknown, p95_us = unknown, p99_us = unknown, max_us = unknown;
};

struct LatencyWindowRow {
  std::int64_t length_us = 0;
  std::int64_t requests = 0;  // the sum of the next five
  std::int64_t good = 0, failed = 0, shed = 0, bad_requests = 0, left = 0;
  std::int64_t bytes_in = 0, bytes_out = 0;
  TimesRow queued, first_byte, total;
};

struct LatencySeriesRow {
  std::string dimension;  // "service", "class", "team", "model"
  std::string name;
  std::vector<LatencyWindowRow> windows;
};

struct BurnRow {
  std::string name;  // "fast", "slow"
  std::int64_t long_us = 0, short_us = 0;
  std::int64_t limit_milli = 0;
  std::int64_t long_milli = unknown, short_milli = unknown;  // 1000: as fast as is allowed
  bool alarm = false;
};

// What the engines of the replicas count themselves, together; unknown: none of them says.
struct EngineRow {
  std::int64_t replicas = 0;  // that answered
  std::int64_t asked = 0;
  std::int64_t age_us = unknown;
  std::int64_t running = unknown, waiting = unknown;  // requests
  std::int64_t kv_use_ppm = unknown;                  // of the fullest one
  std::int64_t prompt_tokens_milli_per_s = unknown;   // over the last minute
  std::int64_t generated_tokens_milli_per_s = unknown;
  std::int64_t inter_token_count = unknown;  // since each engine began
  std::int64_t inter_token_p50_us = unknown, inter_token_p95_us = unknown,
               inter_token_p99_us = unknown;
};

struct LatencyReport {
  PoolStatus pool;
  Subject subject;
  std::int64_t requests = 0;  // since the oldest record that is kept
  std::int64_t slo_first_byte_us = unknown;
  std::int64_t objective_ppm = 0;
  std::vector<BurnRow> burns;
  std::vector<LatencySeriesRow> series;
  EngineRow engine;
};

[[nodiscard]] std::string encode(const LatencyReport& report);

}  // namespace neap::api
