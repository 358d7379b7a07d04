// A journal in memory: encoded records, and up to where they would survive a crash.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/model/codec.h"
#include "core/model/events.h"
#include "core/model/state.h"

namespace neap::sim {

struct JournalRecord {
  Time time;
  enum class Kind : std::uint8_t { event, decision } kind = Kind::event;
  std::string bytes;
};

class SimulatedJournal {
 public:
  // An event and what was decided on it are one write: durable together or not at all.
  void append(Time time, const Event& event, const std::vector<Decision>& decisions);
  // Of the state as it is after the last appended record.
  void snapshot(const PoolState& state) { snapshots_.push_back({size(), encode_snapshot(state)}); }
  void set_durable(std::size_t records) { durable_ = records; }
  // What was not durable is gone.
  void crash();

  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] std::size_t durable() const { return durable_; }
  // From the newest snapshot, and from the very first record: both must be the same state.
  [[nodiscard]] PoolState restore() const;
  [[nodiscard]] PoolState replay() const;

 private:
  struct Snapshot {
    std::size_t after = 0;  // so many records
    std::string bytes;
  };
  void replay_from(std::size_t first, PoolState& state) const;

  std::vector<JournalRecord> records_;
  std::vector<Snapshot> snapshots_;
  std::size_t durable_ = 0;
};

}  // namespace neap::sim
