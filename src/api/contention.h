// What is fought over beside a service or a task, which rung of the ladder it stands on, and how it
// was alone, as the API shows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/view.h"
#include "core/model/result.h"

namespace neap::api {

enum class WorkKind : std::uint8_t { service, task };

struct EvidenceRow {
  std::string signal, unit;
  double value = 0;
  double limit = 0;  // from which it counts; of times, what it is alone; 0: neither
};

struct SpeedRow {
  std::int64_t first_byte_p50_us = unknown, first_byte_p99_us = unknown;
  std::int64_t inter_token_p50_us = unknown, inter_token_p99_us = unknown;
  std::int64_t step_us = unknown;
  std::int64_t requests_milli_per_s = unknown;
};

struct UseRow {
  std::string name;
  std::int64_t cpu_milli = unknown, cpu_wait_ppm = unknown, memory_bytes = unknown;
  std::int64_t io_bytes_per_s = unknown, major_faults_milli_per_s = unknown;
  std::int64_t steps_milli_per_s = unknown;
  std::int64_t disk_await_us = unknown;  // of the busiest disk then; with baselines
};

struct LadderMoveRow {
  std::int64_t at_us = 0;
  std::string from, to, resource, neighbour, why;
  std::string fault;  // why it could not be carried out; empty: it was
  std::int64_t training_steps_milli_per_s = unknown;  // of the neighbours, just before
};

struct ContentionReport {
  PoolStatus pool;
  Subject subject;
  std::string mode;          // of the ladder: "off", "recommend", "auto"
  std::int64_t windows = 0;  // seen so far, of 5 s each
  std::string resource = "none";
  std::int64_t confidence_ppm = 0;
  std::int64_t slowdown_milli = unknown;  // 1000: as fast as alone
  std::string neighbour;
  std::vector<EvidenceRow> evidence;
  std::vector<std::string> unknown_signals;
  std::string rung = "none", rung_resource = "none";
  std::string next;                  // the rung that is recommended; empty: none
  std::vector<std::string> closed;   // rungs that cannot be taken here, and why
  std::vector<LadderMoveRow> moves;  // the newest, oldest first
  SpeedRow speed, alone;
  UseRow use;
  std::vector<UseRow> neighbours;
  std::int64_t training_steps_milli_per_s = unknown;
  std::int64_t training_steps_before_milli_per_s = unknown;  // before the first rung
};

// One phase of `neap baseline`. alone: neighbours are frozen, until the next phase or so long.
struct BaselineOrder {
  enum class Phase : std::uint8_t { alone, mixed, store, abandon } phase = Phase::alone;
  std::int64_t for_us = 0;
  SpeedRow client_alone, client_mixed;  // with store: what the load generator saw
};

struct BaselineReport {
  PoolStatus pool;
  Subject subject;
  std::int64_t at_us = unknown;  // unknown: none was measured
  SpeedRow alone, mixed, client_alone, client_mixed;
  UseRow use_alone, use_mixed;
  std::vector<std::string> frozen;
};

[[nodiscard]] std::string encode(const ContentionReport& report);
[[nodiscard]] std::string encode(const BaselineReport& report);
// {"phase": "alone", "for_us": 20000000}, {"phase": "store", "client_alone": {...}, ...}
[[nodiscard]] Result<BaselineOrder> decode_baseline(std::string_view body);
// A whole report, as the daemon keeps it.
[[nodiscard]] Result<BaselineReport> decode_baseline_report(std::string_view text);

}  // namespace neap::api
