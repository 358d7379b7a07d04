#include "ledger/checkpoints.h"

#include <algorithm>

namespace neap::ledger {

namespace {

void keep(std::vector<Micros>& list, Micros length) {
  if (list.size() >= checkpoints_kept) list.erase(list.begin());
  list.push_back(length);
}

}  // namespace

Spread spread_of(const std::vector<Micros>& lengths) {
  std::vector<std::int64_t> values;
  values.reserve(lengths.size());
  for (const Micros length : lengths) values.push_back(length.value);
  return spread_of(std::move(values));
}

void CheckpointBook::note(const PoolState& state, Time now, const Event& event, TaskId reporter) {
  if (!reporter.valid()) return;
  const TaskState* task = state.tasks.find(reporter);
  if (task == nullptr || task->service.valid()) return;
  if (std::holds_alternative<TaskStarted>(event)) {
    seen_[reporter].captured = now;
  } else if (const auto* saved = std::get_if<CheckpointDurable>(&event)) {
    CheckpointsSeen& seen = seen_[reporter];
    ++seen.checkpoints;
    // As apply() took it: within this run, and not in the future.
    if (task->captured > seen.captured) keep(seen.intervals, task->captured - seen.captured);
    seen.captured = task->captured;
    if (saved->save.value > 0) keep(seen.saves, saved->save);
    if (saved->stall.value > 0) keep(seen.stalls, saved->stall);
  } else if (const auto* steps = std::get_if<StepsReported>(&event)) {
    CheckpointsSeen& seen = seen_[reporter];
    if (seen.allocation != task->allocation) return;
    seen.allocation = AllocationId::none();
    const Micros restore =
        std::max(Micros(0), now - std::max(Micros(0), steps->busy) - task->placed_at);
    keep(seen.restores, restore);
    const Micros objective = task->spec.contract.recovery;
    if (objective.value > 0 && restore > objective) ++seen.late_restores;
  }
}

void CheckpointBook::note(const PoolState& state, const Decision& decision) {
  if (const auto* asked = std::get_if<CheckpointAsked>(&decision)) {
    ++seen_[asked->task].asked;
  } else if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
    const TaskState* task = state.tasks.find(placed->task);
    if (task == nullptr || task->service.valid() || task->first_started == Time(0)) return;
    CheckpointsSeen& seen = seen_[placed->task];
    ++seen.restarts;
    seen.allocation = placed->allocation;
  }
}

void CheckpointBook::forget(const PoolState& state) {
  std::erase_if(seen_, [&](const auto& entry) { return state.tasks.find(entry.first) == nullptr; });
}

const CheckpointsSeen* CheckpointBook::of(TaskId task) const {
  const auto found = seen_.find(task);
  return found == seen_.end() ? nullptr : &found->second;
}

void CheckpointBook::encode(Encoder& out) const {
  out.put_unsigned(seen_.size());
  for (const auto& [task, seen] : seen_) {
    out.put(task);
    out.put(seen);
  }
}

void CheckpointBook::decode(Decoder& in) {
  seen_.clear();
  for (std::uint64_t left = in.get_unsigned(); left > 0 && !in.failed(); --left) {
    TaskId task;
    in.get(task);
    in.get(seen_[task]);
  }
}

}  // namespace neap::ledger
