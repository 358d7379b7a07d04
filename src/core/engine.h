// The loop of decisions: one record in, everything that follows from it out. The same engine
// runs in the daemon, in the simulator and in what-if copies.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

struct StepResult {
  std::vector<Decision> decisions;  // already applied, in order; to be journalled after the event
  std::vector<Action> actions;      // to be carried out once event and decisions are durable
  // Called after each record is applied, with the state as a replay will have it there: for read
  // models, which must not see what a later decision of the same step made of it. One of the two
  // pointers is set.
  std::function<void(const PoolState&, const Event*, const Decision*)> note;
};

// Refuses an event that the state forbids, before it is journalled: a second task of one name, a
// service that is not there, a report out of sequence. Nothing is changed.
[[nodiscard]] Result<void> check_event(const PoolState& state, const Event& event);

// Applies `event` at `now` (never before the last one) and decides. Precondition: check_event.
// One event is one record, each decision another: the state's sequence grows by 1 + decisions.
void step(PoolState& state, Time now, const Event& event, StepResult& result);

// For replay: applies one record and decides nothing.
void apply(PoolState& state, Time now, const Event& event);
void apply(PoolState& state, Time now, const Decision& decision);

// What decide() would do now, applied as it goes (engine.cpp explains why that is still pure).
void decide(PoolState& state, Time now, StepResult& result);

// When TimerFired must come at the latest; Time::never() when nothing is due.
[[nodiscard]] Time next_timer(const PoolState& state);

// After a restart: actions that may not have been carried out before the crash.
[[nodiscard]] std::vector<Action> pending_actions(const PoolState& state);

}  // namespace neap
