// Who yields for a task that does not fit.
#include <algorithm>
#include <optional>

#include "core/decider.h"
#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "core/rules/leaving.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/resize.h"
#include "core/rules/scale.h"
#include "core/rules/starts.h"
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

// The replicas that wait as this one does, itself first: as many as one node can have. Alone where
// they are to be apart, or are no whole devices.
std::vector<TaskId> waiting_with(const PoolState& state, const TaskState& task) {
  const Shape& shape = state.shape(task.shape);
  std::vector<TaskId> out{task.id};
  const Request& request = shape.request;
  if (request.count != 1 || request.share < whole_device || request.near.apart != Cell::any ||
      request.near.per_domain > 0) {
    return out;
  }
  std::int32_t per_node = 1;
  for (const ModelId model : allowed_models(state, request)) {
    per_node = std::max(per_node, state.models[model.value].per_node);
  }
  for (const QueueKey& key : state.index->waiting[task.shape.value]) {
    if (out.size() == static_cast<std::size_t>(per_node)) break;
    if (key.task != task.id) out.push_back(key.task);
  }
  return out;
}

// Victims for as many replicas on one node.
std::optional<Proposal> find_together(PoolState& state, const TaskState& task, std::size_t replicas,
                                      Time now, Time needed_by) {
  if (replicas < 2) return std::nullopt;
  Shape all = state.shape(task.shape);
  const auto count = static_cast<std::int32_t>(replicas);
  all.request.count = count;
  all.request.cpu_milli *= count;
  all.request.host_memory = all.request.host_memory * count;
  auto found = find_victims(state, all, now, needed_by);
  if (!found || found->slots.size() != replicas) return std::nullopt;
  const NodeId node = state.device(found->slots.front().device).node;
  const bool on_one = std::all_of(found->slots.begin(), found->slots.end(), [&](const Slot& slot) {
    return state.device(slot.device).node == node;
  });
  return on_one ? found : std::nullopt;
}

}  // namespace

// Replicas that wait together are made room for on one node where that is not dearer: one large
// tenant leaves instead of many small ones, and the node's other devices serve the next replicas.
// Returns who is to leave.
std::vector<Victim> Decider::plan_victims(const TaskState& task, Proposal proposal,
                                          Time needed_by) {
  std::vector<TaskId> together;
  if (task.service.valid() && !proposal.victims.empty()) {
    together = waiting_with(state_, task);
    if (auto more = find_together(state_, task, together.size(), now_, needed_by);
        more && more->cost / static_cast<std::int64_t>(together.size()) <= proposal.cost) {
      proposal = std::move(*more);
    } else {
      together.clear();
    }
  }
  std::vector<Victim> victims = proposal.victims;
  if (together.empty()) {
    emit(PreemptionPlanned{task.id, std::move(proposal.slots), std::move(proposal.victims),
                           needed_by, proposal.lower_bound});
    return victims;
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    const Slot slot = proposal.slots[i];
    std::vector<Victim> here;
    for (const Victim& victim : victims) {
      const auto& held = state_.tasks.at(victim.task).slots;
      if (std::any_of(held.begin(), held.end(),
                      [&](const Slot& s) { return s.device == slot.device; })) {
        here.push_back(victim);
      }
    }
    const std::int64_t bound = i == 0 ? proposal.lower_bound : 0;
    emit(PreemptionPlanned{together[i], {slot}, std::move(here), needed_by, bound});
  }
  return victims;
}

// Who found nobody to ask looks again after a while. What can be asked for since then is not for a
// lighter task that happens to look first. True when somebody has claimed it.
bool Decider::let_heavier_claim(const TaskState& task, int& searches) {
  const std::int32_t weight = state_.tier(task.tier).weight;
  const auto& waiting = state_.index->waiting_shapes;
  for (auto s = waiting.first(); s; s = waiting.at_or_after(*s + 1)) {
    if (state_.preempt_retry_at[*s] <= now_ || state_.index->waiting[*s].empty()) continue;
    if (state_.tier(state_.shape(ShapeId(*s)).tier).weight <= weight) continue;
    const TaskState& head = state_.tasks.at(state_.index->waiting[*s].begin()->task);
    if (is_over_limit(head) || is_held_back(state_, head)) continue;
    if (try_preempt(head, searches, Again::now) == Preempting::planned) return true;
  }
  return false;
}

Decider::Preempting Decider::try_preempt(const TaskState& task, int& searches, Again again) {
  const Shape& shape = state_.shape(task.shape);
  const PreemptSpec& preempt = state_.spec.preempt;
  if (fails_to_start(state_, task)) return Preempting::impossible;
  if (!preempt.enabled || shape.dedicated || !may_claim_back(state_, shape)) {
    return Preempting::impossible;
  }
  const bool some_may_yield = somebody_may_yield(state_, shape);
  const bool some_may_shrink = state_.spec.resize.enabled && !state_.index->ranged.empty();
  const bool later =
      again == Again::in_its_time && state_.preempt_retry_at[task.shape.value] > now_;
  if ((!some_may_yield && !some_may_shrink) || later) return Preempting::impossible;
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
  if (let_heavier_claim(task, searches)) return try_preempt(task, searches, again);
  const std::vector<Victim> victims = plan_victims(task, std::move(*proposal), now_ + within);
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
