#include "daemon/report_views.h"

#include <algorithm>
#include <limits>

#include "config/values.h"
#include "core/rules/drill.h"

namespace neap::daemon {

namespace {

std::int64_t known(Time at) { return at == Time::never() ? api::unknown : at.us; }

api::Subject subject_of_id(const PoolState& state, TaskId id) {
  const TaskState* task = state.tasks.find(id);
  if (task == nullptr) return {id.value, "task " + std::to_string(id.value), 0};
  return {id.value, task->spec.name, task->spec.owner.uid};
}

std::string tenths_text(Micros length) {
  if (length < seconds(1)) return std::to_string(length.value / 1000) + "ms";
  const std::int64_t tenths = (length.value + 50'000) / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
}

// "p50 61.0s, p95 64.2s, at most 70.1s of 23"
std::string spread_text(const std::vector<Micros>& lengths) {
  if (lengths.empty()) return {};
  const ledger::Spread spread = ledger::spread_of(lengths);
  return "p50 " + tenths_text(Micros(spread.p50)) + ", p95 " + tenths_text(Micros(spread.p95)) +
         ", at most " + tenths_text(Micros(spread.most)) + " of " + std::to_string(spread.count);
}

void add(std::vector<api::Attribute>& out, std::string name, std::string value) {
  if (!value.empty()) out.push_back({std::move(name), std::move(value)});
}

}  // namespace

api::DrillReport view_drill(const PoolState& state) {
  const DrillState& drill = state.drill;
  api::DrillReport out;
  out.phase = std::string(name_of(drill.phase));
  const DrillResult& result = state.last_drill;
  if (!result.kind.empty()) {
    out.kind = result.kind;
    out.passed = result.passed;
    out.detail = result.detail;
    out.ended_us = result.at.us;
  }
  if (!drill.service.valid()) return out;
  out.service = state.service(drill.service).spec.name;
  out.by = drill.by;
  out.withdrawn = drill.withdrawn;
  out.replicas = drill.replicas;
  out.before = drill.before;
  out.began_us = drill.began.us;
  out.until_us = drill.until.us;
  for (DrillCheck& check : drill_checks(drill)) {
    out.checks.push_back({std::move(check.name), std::move(check.figure), std::move(check.limit),
                          check.kept, check.open});
  }
  for (const DrillReplica& replica : drill.placed) {
    out.placed.push_back({subject_of_id(state, replica.task).name,
                          std::string(name_of(replica.source)), replica.asked.us,
                          known(replica.placed), known(replica.ready)});
  }
  for (const DrillVictim& victim : drill.victims) {
    out.victims.push_back({subject_of_id(state, victim.task), victim.asked.us, victim.promised.us,
                           known(victim.left), known(victim.resumed), victim.lost.value,
                           victim.withdrawn, victim.forced});
  }
  return out;
}

DrillStarted drill_of(const api::DrillOrder& order, const std::string& by) {
  DrillStarted started;
  started.service = order.service;
  started.replicas = static_cast<std::int32_t>(order.replicas);
  started.length = Micros(order.for_us);
  // More than an int holds is more than check_event() allows.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  started.limits.preemptions = static_cast<std::int32_t>(std::min(order.max_preemptions, most));
  started.limits.lost = Micros(order.max_lost_us);
  const auto set = [](std::int64_t given, Micros& into) {
    if (given != api::unknown) into = Micros(given);
  };
  set(order.ready_within_us, started.limits.ready_within);
  set(order.resume_within_us, started.limits.resume_within);
  set(order.pause_us, started.limits.pause);
  started.by = by;
  return started;
}

std::vector<api::Attribute> view_checkpoints(const PoolState& state, const TaskState& task,
                                             const ledger::CheckpointsSeen* seen) {
  std::vector<api::Attribute> out;
  const ContractSpec& contract = task.spec.contract;
  if (task.service.valid() || !contract.any()) return out;
  static const ledger::CheckpointsSeen nothing;
  if (seen == nullptr) seen = &nothing;
  add(out, "checkpoints", std::to_string(seen->checkpoints));
  add(out, "checkpoint.interval", spread_text(seen->intervals));
  add(out, "checkpoint.save", spread_text(seen->saves));
  add(out, "checkpoint.stall", spread_text(seen->stalls));
  add(out, "restore", spread_text(seen->restores));
  if (contract.recovery.value > 0) {
    const auto measured = static_cast<std::int64_t>(seen->restores.size());
    add(out, "restore within objective",
        measured == 0
            ? "not seen yet, objective " + config::to_text(contract.recovery)
            : std::to_string(measured - std::min(measured, seen->late_restores)) + " of " +
                  std::to_string(measured) + ", objective " + config::to_text(contract.recovery));
  }
  add(out, "restarts", std::to_string(seen->restarts));
  if (seen->asked > 0) add(out, "overdue, asked for", std::to_string(seen->asked));
  const std::int32_t most = state.spec.preempt.missed_checkpoints;
  std::string kept = "kept";
  if (task.detail.starts_with("admission revoked")) {
    kept = task.detail;
  } else if (task.stop_reason == StopReason::admission_revoked) {
    kept =
        "admission revoked: " + std::to_string(task.missed) + " checkpoints in a row were overdue";
  } else if (task.missed > 0) {
    kept = "at risk: " + std::to_string(task.missed) + " of " + std::to_string(most) +
           " checkpoints in a row are overdue; after " + std::to_string(most) +
           " its admission is revoked";
  }
  add(out, "contract", kept);
  return out;
}

}  // namespace neap::daemon
