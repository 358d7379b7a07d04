#include "core/rules/adoption.h"

#include <algorithm>
#include <array>

#include "core/model/pool_index.h"
#include "core/rules/place.h"

namespace neap {

namespace {

std::string hours_text(Micros time) {
  return std::to_string(time.value / hours(1).value) + " h " +
         std::to_string(time.value / minutes(1).value % 60) + " min";
}

// A part in percent with three decimals: "99.950 %".
std::string percent_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "nothing";
  const std::int64_t thousandths =
      static_cast<std::int64_t>(static_cast<Wide>(part) * 100'000 / static_cast<Wide>(whole));
  std::string decimals = std::to_string(thousandths % 1000);
  decimals.insert(0, 3 - decimals.size(), '0');
  return std::to_string(thousandths / 1000) + "." + decimals + " %";
}

// part <= limit of the whole, by cross-multiplication.
bool is_at_most(std::int64_t part, std::int64_t whole, Ppm limit) {
  return static_cast<Wide>(part) * all_ppm.value <= static_cast<Wide>(whole) * limit.value;
}

AdoptionGate gate(std::string name, bool met, std::string detail) {
  return {std::move(name), met, std::move(detail)};
}

AdoptionGate count_gate(std::string name, std::int64_t seen, std::int64_t most) {
  return gate(std::move(name), seen <= most,
              std::to_string(seen) + ", at most " + std::to_string(most));
}

AdoptionGate part_gate(std::string name, std::int64_t part, std::int64_t whole, Ppm most) {
  return gate(std::move(name), is_at_most(part, whole, most),
              percent_text(part, whole) + ", at most " + percent_text(most.value, all_ppm.value));
}

AdoptionGate kept_gate(const AdoptionFigures& seen, Ppm least) {
  const std::string asked = "at least " + percent_text(least.value, all_ppm.value);
  if (seen.yields == 0) return gate("kept_at_boundaries", true, "nobody was asked; " + asked);
  const bool met =
      static_cast<Wide>(seen.kept) * all_ppm.value >= static_cast<Wide>(seen.yields) * least.value;
  return gate("kept_at_boundaries", met,
              std::to_string(seen.kept) + " of " + std::to_string(seen.yields) + " (" +
                  percent_text(seen.kept, seen.yields) + "), " + asked);
}

// Pause, resume and reclaim were rehearsed in this stage (F12).
AdoptionGate drill_gate(const PoolState& state) {
  const DrillResult& drill = state.last_drill;
  const bool has_run = !drill.kind.empty() && drill.at >= state.adoption.since;
  if (!has_run) return gate("drill", false, "no drill has been run in this stage");
  return gate("drill", drill.passed,
              drill.kind + (drill.passed ? " passed" : " failed") +
                  (drill.detail.empty() ? "" : ": " + drill.detail));
}

}  // namespace

std::string_view name_of(AdoptionStage stage) {
  constexpr std::array<std::string_view, 3> names{"physical", "memory", "time"};
  return names[static_cast<std::size_t>(stage)];
}

std::string_view name_of(Preset preset) {
  constexpr std::array<std::string_view, 4> names{"none", "inference-led", "balanced",
                                                  "training-led"};
  return names[static_cast<std::size_t>(preset)];
}

std::string_view name_of(Isolation isolation) {
  constexpr std::array<std::string_view, 4> names{"unsaid", "dedicated-windows", "shares",
                                                  "time-slices"};
  return names[static_cast<std::size_t>(isolation)];
}

std::vector<AdoptionGate> stage_gates(const PoolState& state, Time now) {
  const AdoptionBook& book = state.adoption;
  if (book.stage == AdoptionStage::time) return {};
  const AdoptionSpec& spec = state.spec.adoption;
  const AdoptionFigures& seen = book.seen;
  const Micros passed = now - book.since;
  std::vector<AdoptionGate> gates;
  gates.push_back(gate("stabilised", passed >= spec.stabilise,
                       hours_text(passed) + ", at least " + hours_text(spec.stabilise)));
  gates.push_back(
      gate("used", seen.starts >= spec.least_starts,
           std::to_string(seen.starts) + " starts, at least " + std::to_string(spec.least_starts)));
  gates.push_back(count_gate("faults", seen.faults, spec.most_faults));
  gates.push_back(count_gate("breaches", seen.breaches + seen.memory_breaches, spec.most_breaches));
  gates.push_back(part_gate("failed_starts", seen.failures, seen.starts, spec.most_failed));
  gates.push_back(part_gate("shortage", seen.shortage.value, seen.measured.value, spec.most_short));
  gates.push_back(kept_gate(seen, spec.least_kept));
  if (book.stage == AdoptionStage::memory) {
    gates.push_back(drill_gate(state));
  }
  return gates;
}

std::string missing_gates(const PoolState& state, Time now) {
  std::string text;
  for (const AdoptionGate& one : stage_gates(state, now)) {
    if (!one.met) text += (text.empty() ? "" : "; ") + one.name + ": " + one.detail;
  }
  return text;
}

Result<void> check_stage_change(const PoolState& state, const AdoptionChangeRequested& change,
                                Time now) {
  if (change.to > AdoptionStage::time) {
    return fail(ErrorCode::invalid_argument, "expected physical, memory or time", "stage");
  }
  if (!state.configured) return fail(ErrorCode::unavailable, "the pool is not configured yet");
  const AdoptionStage from = state.adoption.stage;
  if (change.to == from) {
    return fail(ErrorCode::conflict, "the pool is in stage " + std::string(name_of(from)));
  }
  if (change.to < from) return {};
  if (static_cast<int>(change.to) > static_cast<int>(from) + 1) {
    return fail(ErrorCode::conflict,
                "a stage is begun from the one before it: memory comes after physical", "stage");
  }
  const std::string missing = missing_gates(state, now);
  if (missing.empty()) return {};
  if (!change.forced) {
    return fail(ErrorCode::conflict,
                "the check of stage " + std::string(name_of(from)) + " is not passed: " + missing);
  }
  if (!change.why.empty()) return {};
  return fail(ErrorCode::invalid_argument, "is needed where a check is passed over", "why");
}

bool is_out_of_stage(const PoolState& state, const TaskState& task) {
  const AdoptionStage stage = state.adoption.stage;
  if (stage == AdoptionStage::time || task.purpose == Purpose::inference || !task.shape.valid()) {
    return false;
  }
  const std::uint8_t roles = allowed_roles(state, state.shape(task.shape));
  return std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
    const DeviceState& device = state.device(slot.device);
    // A guard that training must leave is another matter, and faster (clear_guard).
    if (device.role == Role::buffer && (roles & role_bit(device.role)) == 0) return true;
    return stage == AdoptionStage::physical && device.tenants.front().task != task.id;
  });
}

bool may_claim_back(const PoolState& state, const Shape& demand) {
  // A drill rehearses what the next stage does.
  const bool rehearses = state.drill.phase == DrillPhase::demand;
  return state.adoption.stage == AdoptionStage::time || demand.purpose != Purpose::inference ||
         rehearses;
}

// ---- for apply -------------------------------------------------------------------------------

void begin_stage(PoolState& state, const AdoptionChangeRequested& change) {
  AdoptionBook& book = state.adoption;
  const std::string missing =
      change.to > book.stage && change.forced ? missing_gates(state, state.now) : "";
  const bool is_first = book.changes.empty() && change.to == AdoptionStage::time && !change.forced;
  if (!is_first || change.to != book.stage) {
    book.changes.push_back(
        {state.now, book.stage, change.to, change.forced, change.by, change.why, missing});
  }
  if (book.changes.size() > adoption_changes_kept) book.changes.erase(book.changes.begin());
  book.stage = change.to;
  book.since = state.now;
  book.seen = AdoptionFigures();
  auto& index = *state.index;
  index.victims.touch_all();
  index.placement.reset();  // what devices may give depends on the stage
  index.agenda.roles = index.agenda.adoption = true;
  mark_waiting(state);
  for (const ServiceState& service : state.services) {
    if (!service.removed) index.agenda.services.insert(service.id.value);
  }
}

Ending ending_of(const TaskExited& exit, const TaskState& task) {
  if (exit.signal == 0 && exit.code == 0) return Ending::finished;
  if (exit.signal == 0 && exit.code == 75 && task.spec.contract.any()) return Ending::kept;
  if (exit.detail == "out of memory") return Ending::out_of_memory;
  const bool asked = task.phase == Phase::stopping || task.phase == Phase::yielding ||
                     task.stop_reason != StopReason::none;
  return asked ? Ending::asked : Ending::failed;
}

void note_end(PoolState& state, const TaskState& task, Ending ending) {
  AdoptionFigures& seen = state.adoption.seen;
  if (ending == Ending::failed) ++seen.failures;
  if (ending == Ending::out_of_memory) {
    ++seen.memory_breaches;
    ++seen.failures;
  }
  const bool left_in_order = ending == Ending::kept || ending == Ending::finished;
  const bool was_asked = task.asked_to_yield && task.stop_reason != StopReason::none &&
                         task.stop_reason != StopReason::cancelled;
  if (was_asked && left_in_order && seen.kept < seen.yields) ++seen.kept;
}

void note_stop(AdoptionBook& book, StopReason reason) {
  const bool broken =
      reason == StopReason::contract_breach || reason == StopReason::admission_revoked;
  if (broken) ++book.seen.breaches;
}

void withdraw_yield(AdoptionBook& book) {
  if (book.seen.yields > 0) --book.seen.yields;
}

void note_memory(PoolState& state, const TaskState& task, MiB peak) {
  const auto quota_of = [](const Slot& a, const Slot& b) { return a.memory < b.memory; };
  if (task.slots.empty()) return;
  const MiB quota = std::max_element(task.slots.begin(), task.slots.end(), quota_of)->memory;
  if (peak > quota && task.seen_memory <= quota) ++state.adoption.seen.memory_breaches;
}

void note_shortage(PoolState& state, const ServiceState& service, Micros time) {
  if (service.last_sample == Time::never()) return;
  state.adoption.seen.measured += time;
  if (service.was_short) state.adoption.seen.shortage += time;
}

}  // namespace neap
