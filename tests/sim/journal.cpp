#include "tests/sim/journal.h"

#include "core/model/check.h"

namespace neap::sim {

void SimulatedJournal::append(Time time, const Event& event,
                              const std::vector<Decision>& decisions) {
  records_.push_back({time, JournalRecord::Kind::event, encode(event)});
  for (const Decision& decision : decisions) {
    records_.push_back({time, JournalRecord::Kind::decision, encode(decision)});
  }
}

void SimulatedJournal::crash() {
  records_.resize(durable_);
  std::erase_if(snapshots_, [&](const Snapshot& s) { return s.after > durable_; });
}

PoolState SimulatedJournal::restore() const {
  if (snapshots_.empty()) return replay();
  Result<PoolState> state = decode_snapshot(snapshots_.back().bytes);
  NEAP_CHECK(state.has_value());
  replay_from(snapshots_.back().after, *state);
  return std::move(*state);
}

PoolState SimulatedJournal::replay() const {
  PoolState state;
  replay_from(0, state);
  return state;
}

void SimulatedJournal::replay_from(std::size_t first, PoolState& state) const {
  for (std::size_t i = first; i < durable_; ++i) {
    const JournalRecord& record = records_[i];
    if (record.kind == JournalRecord::Kind::event) {
      const Result<Event> event = decode_event(record.bytes);
      NEAP_CHECK(event.has_value());
      apply(state, record.time, *event);
    } else {
      const Result<Decision> decision = decode_decision(record.bytes);
      NEAP_CHECK(decision.has_value());
      apply(state, record.time, *decision);
    }
  }
}

}  // namespace neap::sim
