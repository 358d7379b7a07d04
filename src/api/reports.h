// Reports over the journal and drills, as the API shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/view.h"
#include "core/model/result.h"
#include "ledger/preemptions.h"

namespace neap::api {

struct DrillOrder {
  std::string service;
  std::int64_t replicas = 0;  // that it is to have at least
  std::int64_t for_us = 0;
  std::int64_t max_preemptions = 4;
  std::int64_t max_lost_us = 0;
  std::int64_t ready_within_us = unknown;  // unknown: what the pool takes
  std::int64_t resume_within_us = unknown;
  std::int64_t pause_us = unknown;
};

struct DrillCheckRow {
  std::string name;
  std::string figure;
  std::string limit;
  bool kept = false;
  bool open = false;  // the drill is under way, and it may still be kept or not
};
struct DrillReplicaRow {
  std::string name;
  std::string source;  // "free", "guard", "buffer", "yielded"; "none": not placed
  std::int64_t asked_us = unknown, placed_us = unknown, ready_us = unknown;
};
struct DrillVictimRow {
  Subject task;
  std::int64_t asked_us = unknown, promised_us = unknown, left_us = unknown, resumed_us = unknown;
  std::int64_t lost_us = 0;
  bool withdrawn = false, forced = false;
};
struct DrillReport {
  std::string phase;  // "none", "demand", "settling"
  std::string service, by, withdrawn;
  std::int64_t replicas = 0, before = 0;
  std::int64_t began_us = unknown;  // unknown: there was no drill
  std::int64_t until_us = unknown;
  std::vector<DrillCheckRow> checks;
  std::vector<DrillReplicaRow> placed;
  std::vector<DrillVictimRow> victims;
  // Of the last drill that ended; an empty kind: none did.
  std::string kind, detail;
  bool passed = false;
  std::int64_t ended_us = unknown;
};

[[nodiscard]] std::string encode(const ledger::PreemptionReport& report);
[[nodiscard]] std::string encode(const DrillReport& report);
[[nodiscard]] Result<DrillOrder> decode_drill(std::string_view body);

}  // namespace neap::api
