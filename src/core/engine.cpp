// The decisions of the pool, in order. decide() reads the state and emits decisions; each is
// applied the moment it is emitted, so that a later step sees what an earlier one chose. Emitting
// is the only way in which it changes anything: the same state at the same time yields the same
// decisions, and applying them to a copy yields the same state.
#include "core/engine.h"

#include <algorithm>

#include "core/decider.h"
#include "core/model/check.h"
#include "core/model/pool_index.h"
#include "core/rules/preempt.h"

namespace neap {

// Tenants whose offers are measured anew after each event, so that the work of changed nodes does
// not pile up for the next search for victims.
constexpr std::int64_t tenants_settled_per_step = 16;

void step(PoolState& state, Time now, const Event& event, StepResult& result) {
  apply(state, now, event);
  if (result.note) result.note(state, &event, nullptr);
  decide(state, now, result);
  settle_victim_bounds(state, now, tenants_settled_per_step);
}

void decide(PoolState& state, Time now, StepResult& result) {
  if (!state.configured) return;
  Decider decider(state, now, result);
  decider.admit_submitted();          // 1. judge what was submitted
  decider.watch_devices();            // 2. leave out what is used from outside, leave what failed
  decider.keep_deadlines();           // 3. yields, stops, checkpoints and pauses that are due
  decider.keep_guard();               // 4. roles of devices; training leaves the guard
  decider.advance_pipelines();        // 5. stages enter and end
  decider.scale_services();           // 6. replicas follow the load, or a new version
  decider.settle_plans();             // 7. victims have left: start who waited, drop the needless
  decider.keep_room();                // 8. for who waited long and is passed by others
  decider.keep_accepted_deadlines();  // 9. who is near one goes on in another tier
  decider.keep_lane();                // 10. who waited as long as its tier allows goes first
  decider.place_waiting();            // 11. in order: place, or plan a preemption, or say why not
  decider.defragment();               // 12. at low tide: devices and nodes become free as a whole
  decider.rehearse();                 // 13. a drill pauses, resumes and ends by itself
  decider.grow();                     // 14. who runs with fewer devices than it asks for gets more
  decider.report_conditions();        // 15. conditions of the pool
}

Time next_timer(const PoolState& state) {
  const auto& agenda = state.index->agenda;
  const bool work_left = !agenda.shapes.empty() || !agenda.services.empty() ||
                         !agenda.admit.empty() || !agenda.plans.empty() ||
                         !agenda.attention.empty() || !agenda.pipelines.empty() ||
                         !agenda.bounds.empty();
  if (work_left) return state.now;
  return state.index->timers.empty() ? Time::never() : std::get<Time>(*state.index->timers.begin());
}

}  // namespace neap
