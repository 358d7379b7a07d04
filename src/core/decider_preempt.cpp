// Who yields for a task that does not fit.
#include <algorithm>
#include <optional>

#include "core/decider.h"
#include "core/rules/adoption.h"
#include "core/rules/leaving.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/resize.h"
#include "core/rules/teams.h"
#include "core/rules/tide.h"
namespace neap {

namespace {
// Somebody of a lighter tier runs, or of the same one for a guarantee.
bool somebody_may_yield(const PoolState& state, const Shape& shape) {
  const auto& running = state.index->running_by_tier;
  const bool equal = TeamRights(state, shape).taking() == Taking::equal;
  return std::any_of(running.begin(), running.end(), [&](const auto& entry) {
    const auto [tier, purpose] = entry.first;
    return tier > shape.tier || (equal && purpose == static_cast<std::uint8_t>(Purpose::batch) &&
                                 state.tier(tier).weight == state.tier(shape.tier).weight);
  });
}
}  // namespace

Decider::Preempting Decider::try_preempt(const TaskState& task, int& searches) {
  const Shape& shape = state_.shape(task.shape);
  const PreemptSpec& preempt = state_.spec.preempt;
  if (!preempt.enabled || shape.dedicated || !may_claim_back(state_, shape)) {
    return Preempting::impossible;
  }
  const bool some_may_yield = somebody_may_yield(state_, shape);
  const bool some_may_shrink = state_.spec.resize.enabled && !state_.index->ranged.empty();
  if ((!some_may_yield && !some_may_shrink) || state_.preempt_retry_at[task.shape.value] > now_) {
    return Preempting::impossible;
  }
  if (++searches > victim_searches_per_decide) {
    state_.index->agenda.shapes.insert(task.shape.value);
    return Preempting::impossible;
  }
  const bool below_floor =
      shape.purpose == Purpose::inference && state_.index->training_on_guard > 0;
  const Micros usual = preempt.checkpoint_interval + preempt.grace;
  const bool at_once =
      below_floor || (task.service.valid() && is_short(state_, state_.service(task.service), now_));
  Micros within = at_once ? preempt.guard_reclaim : usual;
  // What is being left already may be enough, or that others go on with fewer devices; only then
  // is anybody preempted.
  std::optional<Proposal> proposal;
  std::vector<Micros> waits{within};
  if (at_once && !below_floor) waits.push_back(usual);  // nobody can leave so soon
  for (const Micros wait : waits) {
    within = wait;
    proposal = find_proposal(shape, now_ + within, Asking::nobody);
    if (proposal) break;
    if (!state_.pause.active && shrink_for(task, now_ + within)) return Preempting::planned;
    if (some_may_yield) proposal = find_proposal(shape, now_ + within, Asking::others);
    if (proposal) break;
  }
  // Nobody is asked to yield in a pause (G4); who waits is told whether it is that.
  if (state_.pause.active) return proposal ? Preempting::paused : Preempting::impossible;
  if (!proposal) {
    emit(PreemptRetryScheduled{task.shape, now_ + preempt_retry});
    return Preempting::impossible;
  }
  const std::vector<Victim> victims = proposal->victims;
  emit(PreemptionPlanned{task.id, std::move(proposal->slots), std::move(proposal->victims),
                         now_ + within, proposal->lower_bound});
  for (const Victim& victim : victims) {
    const TaskState& v = state_.tasks.at(victim.task);
    if (victim.mode == ReleaseMode::finish || v.phase != Phase::running) continue;
    if (victim.mode == ReleaseMode::kill) {
      emit(KillAsked{v.id, v.allocation, StopReason::preempted});
    } else {
      emit(YieldAsked{v.id, v.allocation, victim.mode, victim.release_by, StopReason::preempted});
    }
  }
  return Preempting::planned;
}

// For all devices that it asks for, or for as many of them as others leave.
std::optional<Proposal> Decider::find_proposal(const Shape& shape, Time by, Asking asking) {
  std::vector<std::int32_t> counts = fewer_devices(shape.request);
  counts.insert(counts.begin(), shape.request.count);
  for (const std::int32_t n : counts) {
    const Shape some = with_devices(shape, n);
    if (limit_in_the_way(state_, shape.team, milli_of(some.request))) continue;
    auto found = asking == Asking::nobody ? find_leaving(state_, some, by)
                                          : find_victims(state_, some, now_, by);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace neap
