#include "daemon/books.h"

#include <algorithm>

#include "core/model/codec.h"
#include "daemon/narrate.h"

namespace neap::daemon {

namespace {

// What belongs in the trail of a task: where it is, in what phase and why; not its steps.
bool is_trail(const Record& record) {
  if (const auto* event = std::get_if<Event>(&record.body)) {
    return !std::holds_alternative<StepsReported>(*event) &&
           !std::holds_alternative<RequestsServed>(*event) &&
           !std::holds_alternative<CheckpointDurable>(*event) &&
           !std::holds_alternative<ContractGreeting>(*event);
  }
  return true;
}

}  // namespace

void Books::note(const PoolState& state, const Record& record) {
  std::visit([&](const auto& body) { ledger_.apply(record.time, body); }, record.body);
  if (const auto* event = std::get_if<Event>(&record.body)) {
    preemptions_.note(state, record.time, *event);
    checkpoints_.note(state, record.time, *event, record.reporter);
  } else {
    const auto& decision = std::get<Decision>(record.body);
    preemptions_.note(state, record.time, decision);
    checkpoints_.note(state, decision);
  }
  weeks_.note(state);
  // Forgotten tasks leave the books too; looked at now and then, not at each record.
  if (record.sequence % 4096 == 0) {
    const auto forgotten = [&](TaskId id) { return state.tasks.find(id) == nullptr; };
    checkpoints_.forget(state);
    std::erase_if(trails_, [&](const auto& entry) { return forgotten(entry.first); });
    std::erase_if(allocations_, [&](const auto& entry) { return forgotten(entry.second); });
  }
  if (!is_trail(record)) return;
  if (const auto* decision = std::get_if<Decision>(&record.body)) {
    if (const auto* placed = std::get_if<TaskPlaced>(decision)) {
      allocations_[placed->allocation] = placed->task;
    }
  }
  Narration words;
  if (const auto* event = std::get_if<Event>(&record.body)) {
    if (std::holds_alternative<TimerFired>(*event)) return;
    words = narrate(state, record.time, *event, record.reporter);
  } else {
    words = narrate(state, record.time, std::get<Decision>(record.body));
  }
  if (words.task.valid()) add(state, record, words.task, std::move(words.message));
}

void Books::add(const PoolState& state, const Record& record, TaskId id, std::string reason) {
  const TaskState* task = state.tasks.find(id);
  if (task == nullptr) {
    trails_.erase(id);
    return;
  }
  auto& trail = trails_[id];
  trail.push_back({record.sequence, record.time, task->phase, place_text(state, task->slots),
                   std::move(reason)});
  if (trail.size() > trail_kept) trail.pop_front();
}

TaskId Books::task_of(AllocationId allocation) const {
  const auto found = allocations_.find(allocation);
  return found == allocations_.end() ? TaskId::none() : found->second;
}

std::vector<TrailStep> Books::trail_of(TaskId task) const {
  const auto found = trails_.find(task);
  if (found == trails_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Books::encode(Encoder& out) const {
  out.put(ledger_.save());
  std::vector<TaskId> ids;
  ids.reserve(trails_.size());
  for (const auto& [id, trail] : trails_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  out.put_unsigned(ids.size());
  for (const TaskId id : ids) {
    out.put(id);
    out.put(trail_of(id));
  }
  std::vector<std::pair<AllocationId, TaskId>> allocations(allocations_.begin(),
                                                           allocations_.end());
  std::sort(allocations.begin(), allocations.end());
  out.put_unsigned(allocations.size());
  for (const auto& [allocation, task] : allocations) {
    out.put(allocation);
    out.put(task);
  }
  preemptions_.encode(out);
  checkpoints_.encode(out);
  weeks_.encode(out);
}

void Books::encode_balances(Encoder& out) const { out.put(ledger_.save()); }

Result<void> Books::decode(Decoder& in) {
  std::string saved;
  in.get(saved);
  auto ledger = ledger::Ledger::load(saved, {});
  if (!ledger) return tl::unexpected(ledger.error());
  ledger_ = std::move(*ledger);
  trails_.clear();
  const std::uint64_t count = in.get_unsigned();
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    TaskId id;
    std::vector<TrailStep> steps;
    in.get(id);
    in.get(steps);
    trails_[id] = {steps.begin(), steps.end()};
  }
  allocations_.clear();
  const std::uint64_t allocations = in.get_unsigned();
  for (std::uint64_t i = 0; i < allocations && !in.failed(); ++i) {
    AllocationId allocation;
    TaskId task;
    in.get(allocation);
    in.get(task);
    allocations_[allocation] = task;
  }
  preemptions_.decode(in);
  checkpoints_.decode(in);
  if (!weeks_.decode(in)) {
    return fail(ErrorCode::invalid_argument, "the weeks of this snapshot are cut short or altered");
  }
  return {};
}

std::string encode_checkpoint(const PoolState& state, const Books& books) {
  Encoder out;
  out.put(encode_snapshot(state));
  books.encode(out);
  return out.take();
}

Result<Restored> decode_checkpoint(std::string_view bytes) {
  Decoder in(bytes);
  std::string snapshot;
  in.get(snapshot);
  Restored restored;
  if (auto books = restored.books.decode(in); !books) return tl::unexpected(books.error());
  if (in.failed() || !in.at_end()) {
    return fail(ErrorCode::internal, "the snapshot is cut short or altered");
  }
  auto state = decode_snapshot(snapshot);
  if (!state) return tl::unexpected(state.error());
  restored.state = std::move(*state);
  return restored;
}

}  // namespace neap::daemon
