// One list of fields per type serves the journal's codec, the state's hash and JSON dumps, so
// that none of them can forget a field. A visitor is called as visitor("name", value).
#pragma once

#include <concepts>
#include <type_traits>

#include "core/model/events.h"
#include "core/model/spec.h"
#include "core/model/units.h"

#define NEAP_EXPAND_(x) x
#define NEAP_F1_(a) visitor(#a, self.a);
#define NEAP_F2_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F1_(__VA_ARGS__))
#define NEAP_F3_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F2_(__VA_ARGS__))
#define NEAP_F4_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F3_(__VA_ARGS__))
#define NEAP_F5_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F4_(__VA_ARGS__))
#define NEAP_F6_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F5_(__VA_ARGS__))
#define NEAP_F7_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F6_(__VA_ARGS__))
#define NEAP_F8_(a, ...) \
  visitor(#a, self.a);   \
  NEAP_EXPAND_(NEAP_F7_(__VA_ARGS__))
#define NEAP_PICK_(_1, _2, _3, _4, _5, _6, _7, _8, NAME, ...) NAME
// Up to eight fields a row; a type with more takes several NEAP_ROWs inside NEAP_FIELDS_BEGIN/END.
#define NEAP_ROW(...)                                                                              \
  NEAP_EXPAND_(NEAP_PICK_(__VA_ARGS__, NEAP_F8_, NEAP_F7_, NEAP_F6_, NEAP_F5_, NEAP_F4_, NEAP_F3_, \
                          NEAP_F2_, NEAP_F1_)(__VA_ARGS__))
#define NEAP_FIELDS_BEGIN(Type)                          \
  template <class Visitor, class Self>                   \
  requires std::same_as<std::remove_const_t<Self>, Type> \
  void visit_fields([[maybe_unused]] Visitor& visitor, [[maybe_unused]] Self& self) {
#define NEAP_FIELDS_END }
#define NEAP_FIELDS(Type, ...) NEAP_FIELDS_BEGIN(Type) NEAP_ROW(__VA_ARGS__) NEAP_FIELDS_END

namespace neap::lead_time {
NEAP_FIELDS(Costs, idle, shortage)
NEAP_FIELDS(Promotion, from, to, devices)
NEAP_FIELDS(Hour, peak, excess, violated, ready)
NEAP_FIELDS_BEGIN(GuardState)
NEAP_ROW(slot, last, hours, open, raised, dwelling)
NEAP_ROW(base, quantile, tracked, derived, guard)
NEAP_FIELDS_END
NEAP_FIELDS(ElasticState, guard, buffered)
NEAP_FIELDS(OutageState, slots, day)
}  // namespace neap::lead_time

namespace neap {

NEAP_FIELDS(Envelope, burst, per_hour)
NEAP_FIELDS(TierSpec, name, weight, purpose, wait, envelope)
NEAP_FIELDS_BEGIN(PreemptSpec)
NEAP_ROW(enabled, only_at_checkpoint, break_glass, checkpoint_interval, grace, term_grace)
NEAP_ROW(guard_reclaim, fixed_cost, protect_min, budget_per_day, rounds, missed_checkpoints)
NEAP_ROW(compensation, wait_min, chain_protect)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(ScaleSpec)
NEAP_ROW(mode, up_above, up_for, down_below, down_for, stale_after, headroom, dwell)
NEAP_ROW(trend, plan)
NEAP_ROW(queue_above, first_byte_above)
NEAP_ROW(plan_days, dwell_measured, switch_leave, switch_load, switch_budget)
NEAP_FIELDS_END
NEAP_FIELDS(TideSpec, derive, slot, lead, violations_per_mille, costs, calendar)
NEAP_FIELDS(PrefilterSpec, out_above, back_below, back_after)
NEAP_FIELDS(ReserveSpec, after, most)
NEAP_FIELDS(TeamSpec, name, parent, guarantee, limit, weight)
NEAP_FIELDS(ResizeSpec, enabled, dwell)
NEAP_FIELDS(DefragmentSpec, enabled, every, horizon, quiet_below, cooldown)
NEAP_FIELDS(StartsSpec, at_once, apart, loading)
NEAP_FIELDS_BEGIN(AdoptionSpec)
NEAP_ROW(begin, stabilise, least_starts, most_faults, most_breaches, most_failed, most_short)
NEAP_ROW(least_kept)
NEAP_FIELDS_END
NEAP_FIELDS(DerivedValue, key, value)
NEAP_FIELDS(FairnessSpec, lane, lane_within, longest_bound, deadline_tier, promoted_max)
NEAP_FIELDS_BEGIN(PoolSpec)
NEAP_ROW(name, total_gpus, inference_guard_min, elastic_buffer, preempt, scale, prefilter, tiers)
NEAP_ROW(baseline, share_min_memory, device_reserve, max_restarts, reserve, defragment, tide)
NEAP_ROW(teams, resize, fairness)
NEAP_ROW(starts, adoption, preset, isolation, derived)
NEAP_FIELDS_END
NEAP_FIELDS(DeviceSpec, uuid, model, memory, dedicated, pair)
NEAP_FIELDS(NodeSpec, name, fault_domain, devices, rack, cpu_milli, memory)
NEAP_FIELDS(Nearness, within, exclude, group, apart, per_domain, weights)
NEAP_FIELDS_BEGIN(Request)
NEAP_ROW(count, share, memory, models, trust_domain, cpu_milli, host_memory, near)
NEAP_ROW(least)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(ContractSpec)
NEAP_ROW(sdk, signals, watch, on_demand, interval, save, stall, drain)
NEAP_ROW(release, restore, recovery)
NEAP_FIELDS_END
NEAP_FIELDS(DayWindow, from, to)
NEAP_FIELDS(Owner, uid, gid, user)
NEAP_FIELDS(MemorySplit, weights, kv_cache, activations, framework)
NEAP_FIELDS(StageInput, stage, directory)
NEAP_FIELDS(Artifacts, own, inputs)
NEAP_FIELDS_BEGIN(TaskSpec)
NEAP_ROW(name, team, tier, request, contract, interruptible, predictable, delay_tolerance)
NEAP_ROW(work, deadline, windows, baseline, owner, launch, artifacts)
NEAP_ROW(profile, split, learned)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(ServiceSpec)
NEAP_ROW(name, team, tier, request, min_replicas, max_replicas, concurrency, slo_first_byte)
NEAP_ROW(scale, start_timeout, drain_timeout, baseline, owner, launch, artifacts)
NEAP_ROW(profile, split, learned)
NEAP_FIELDS_END
NEAP_FIELDS(Metric, name, value)
NEAP_FIELDS(StageCondition, stage, metric, comparison, bound)
NEAP_FIELDS(StageSpec, name, after, when, task, service)
NEAP_FIELDS(PipelineSpec, name, team, owner, stages)

NEAP_FIELDS(ReportStamp, source, epoch, sequence)
NEAP_FIELDS(PoolConfigured, spec)
NEAP_FIELDS(NodeJoined, spec)
NEAP_FIELDS(NodeUnreachable, node)
NEAP_FIELDS(NodeLost, node)
NEAP_FIELDS(DeviceHealthChanged, node, index, health, detail)
NEAP_FIELDS(ForeignMemoryChanged, node, index, used)
NEAP_FIELDS(TaskSubmitted, spec)
NEAP_FIELDS(TaskCancelRequested, name, by)
NEAP_FIELDS(ServiceSubmitted, spec)
NEAP_FIELDS(ServiceRemoveRequested, name, by)
NEAP_FIELDS(ServiceScaled, name, min_replicas, max_replicas, by)
NEAP_FIELDS(ServiceMeasured, name, in_use, queued, ended, first_byte_p95)
NEAP_FIELDS(ServiceReplaced, spec, by)
NEAP_FIELDS(PipelineSubmitted, spec)
NEAP_FIELDS(PipelineCancelRequested, name, by)
NEAP_FIELDS(MetricsRead, pipeline, stage, values, fault)
NEAP_FIELDS(PauseRequested, by, why)
NEAP_FIELDS(ResumeRequested, by)
NEAP_FIELDS(AdoptionChangeRequested, to, by, why, forced)
NEAP_FIELDS(MemoryObserved, allocation, peak)
NEAP_FIELDS_BEGIN(TimerFired)
NEAP_FIELDS_END
NEAP_FIELDS(TaskStarted, stamp)
NEAP_FIELDS(ReplicaHealthy, stamp)
NEAP_FIELDS(ReplicaUnhealthy, stamp, detail)
NEAP_FIELDS(ContractGreeting, stamp, on_demand, boundary)
NEAP_FIELDS(StepsReported, stamp, last, count, busy)
NEAP_FIELDS(RequestsServed, allocation, responses, within_slo, busy_within_slo)
NEAP_FIELDS(CheckpointDurable, stamp, step, path, bytes, captured, save, stall)
NEAP_FIELDS(YieldAcknowledged, stamp, step)
NEAP_FIELDS(ContractBroken, stamp, detail)
NEAP_FIELDS(TaskExited, stamp, code, signal, detail)
NEAP_FIELDS(StartFailed, stamp, detail)
NEAP_FIELDS(DemandKind, cpu_milli, count, share, memory, models)
NEAP_FIELDS(DemandCount, kind, tasks)
NEAP_FIELDS(PlacementLearned, seen, kinds, table)
NEAP_FIELDS(WaitExpected, tier, wait)
NEAP_FIELDS(DrillLimits, preemptions, lost, ready_within, resume_within, pause, freeze_within)
NEAP_FIELDS(DrillStarted, service, replicas, length, limits, by)
NEAP_FIELDS(DrillStopRequested, by)

NEAP_FIELDS(Slot, device, share, memory)
NEAP_FIELDS(Victim, task, mode, release_by, cost)
NEAP_FIELDS(TaskAdmitted, task, dedicated, releasable, lane, deadline)
NEAP_FIELDS(TaskRefused, task, condition, detail)
NEAP_FIELDS(TaskPlaced, task, allocation, slots, lender, leaves_by)
NEAP_FIELDS(PreemptionPlanned, task, slots, victims, needed_by, lower_bound)
NEAP_FIELDS(PreemptionDropped, task, why)
NEAP_FIELDS(YieldAsked, task, allocation, mode, release_by, reason)
NEAP_FIELDS(YieldWithdrawn, task, allocation)
NEAP_FIELDS(CheckpointAsked, task, allocation, missed)
NEAP_FIELDS(StopAsked, task, allocation, reason, kill_at)
NEAP_FIELDS(KillAsked, task, allocation, reason)
NEAP_FIELDS(BackoffEnded, task)
NEAP_FIELDS(ReplicaAdded, service, task, why, cause)
NEAP_FIELDS(ReplicaDropped, service, task, why)
NEAP_FIELDS(RolesAssigned, guard, buffer, lane)
NEAP_FIELDS(DeviceExcluded, device, foreign)
NEAP_FIELDS(DeviceReadmitted, device)
NEAP_FIELDS(WaitReasonChanged, shape, code)
NEAP_FIELDS(ConditionChanged, condition, active, detail)
NEAP_FIELDS(PreemptRetryScheduled, shape, at)
NEAP_FIELDS(RoomReserved, task, slots, victims, expected)
NEAP_FIELDS(MovePlanned, task, slots, for_task, expected)
NEAP_FIELDS(DemandCounted, demand, slots)
NEAP_FIELDS(LookScheduled, look, at)
NEAP_FIELDS(StageEntered, pipeline, stage, task, service, team)
NEAP_FIELDS(StageEnded, pipeline, stage, task, outcome, why)
NEAP_FIELDS(ServiceRolled, service, outcome, why)
NEAP_FIELDS(StartBoundSet, task, code, forced_at, start_by, ahead)
NEAP_FIELDS(TaskForced, task)
NEAP_FIELDS(TierChanged, task, tier, why)
NEAP_FIELDS_BEGIN(DrillPaused)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(DrillResumed)
NEAP_FIELDS_END
NEAP_FIELDS(DrillWithdrawn, why)
NEAP_FIELDS(DrillEnded, kind, passed, at, detail)
NEAP_FIELDS(DrillReplica, task, asked, placed, ready, source)
NEAP_FIELDS_BEGIN(DrillVictim)
NEAP_ROW(task, allocation, asked, promised, left, resumed, lost, withdrawn)
NEAP_ROW(forced, lost_before)
NEAP_FIELDS_END
NEAP_FIELDS_BEGIN(DrillState)
NEAP_ROW(phase, service, replicas, before, limits, by, began, until)
NEAP_ROW(settle_by, withdrawn, placed, victims, idle_reserve, pause_at, paused_at, resumed_at)
NEAP_ROW(pausing, froze, asked_in_pause, asked_after_pause)
NEAP_FIELDS_END
NEAP_FIELDS(DrillResult, kind, passed, at, detail)
NEAP_FIELDS(LoadingEnded, task)

}  // namespace neap
