// Stages of pipelines enter and end; new versions of services take over replica by replica.
#include <utility>

#include "core/decider.h"
#include "core/rules/chain.h"
#include "core/rules/roll.h"

namespace neap {

// ---- 5 ---------------------------------------------------------------------------------------

void Decider::advance_pipelines() {
  auto& changed = state_.index->agenda.pipelines;
  while (!changed.empty()) {
    const PipelineId id = *changed.begin();
    changed.erase(changed.begin());
    while (const PipelineState* pipeline = find_pipeline(state_, id)) {
      if (pipeline->ended != Time::never()) break;
      auto step = next_step(state_, *pipeline);
      if (!step) break;
      emit(std::move(*step));
    }
  }
}

// ---- 6 ---------------------------------------------------------------------------------------

Decider::Rolling Decider::roll_service(ServiceId id) {
  const RollStep change = roll_step(state_, state_.service(id));
  if (change.ends) {
    emit(*change.ends);
    return Rolling::ended;  // its replicas are looked at again
  }
  for (const TaskId replica : change.remove) {
    const TaskState& task = state_.tasks.at(replica);
    const char* why = "another version of the service takes over";
    if (task.phase == Phase::waiting) {
      drop_plan_of(replica, why);
      emit(ReplicaDropped{id, replica, why});
    } else {
      stop(task, StopReason::replaced);
    }
  }
  if (change.add == RollStep::Add::one) {
    emit(ReplicaAdded{id, state_.tasks.next_id(), "the new version, beside the old one",
                      ReplicaCause::roll});
  }
  return Rolling::goes_on;
}

}  // namespace neap
