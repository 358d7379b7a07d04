#include "ledger/preemptions.h"

#include <algorithm>
#include <array>

#include "core/model/pool_index.h"

namespace neap::ledger {

namespace {

constexpr std::uint64_t records_between_looks = 4096;

std::int64_t milli_of(const std::vector<Slot>& slots) {
  std::int64_t milli = 0;
  for (const Slot& slot : slots) milli += slot.share.value;
  return milli;
}

bool is_training(const TaskState* task) { return task != nullptr && !task->service.valid(); }

bool is_preemption(StopReason reason) {
  return reason == StopReason::preempted || reason == StopReason::guard_restored ||
         reason == StopReason::adoption;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 4> names{"open", "done", "withdrawn", "failed"};
  return names[static_cast<std::size_t>(outcome)];
}

// ---- what happens ----------------------------------------------------------------------------

void PreemptionBook::note(const PoolState& state, Time now, const Event& event) {
  if (const auto* exited = std::get_if<TaskExited>(&event)) {
    end_stay(state, exited->stamp.source, now);
  } else if (const auto* failed = std::get_if<StartFailed>(&event)) {
    end_stay(state, failed->stamp.source, now);
  } else if (std::holds_alternative<NodeLost>(event)) {
    std::vector<AllocationId> gone;
    for (const auto& [allocation, stay] : held_) {
      if (!state.index->allocations.contains(allocation)) gone.push_back(allocation);
    }
    for (const AllocationId allocation : gone) end_stay(state, allocation, now);
  }
  if (++records_ % records_between_looks == 0) drop_ended_waits(state);
}

void PreemptionBook::note(const PoolState& state, Time now, const Decision& decision) {
  if (const auto* admitted = std::get_if<TaskAdmitted>(&decision)) {
    begin_wait(state, admitted->task, now);
  } else if (const auto* moved = std::get_if<TierChanged>(&decision)) {
    end_wait(moved->task, now);
    begin_wait(state, moved->task, now);
  } else if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
    begin_stay(state, *placed, now);
  } else if (const auto* asked = std::get_if<YieldAsked>(&decision)) {
    if (!is_preemption(asked->reason)) return;
    Preemption made;
    made.task = asked->task;
    made.allocation = asked->allocation;
    made.mode = asked->mode;
    made.asked = now;
    made.promised = asked->release_by;
    ask(state, std::move(made));
  } else if (const auto* told = std::get_if<YieldWithdrawn>(&decision)) {
    if (Preemption* preemption = asking_of(told->allocation)) {
      if (preemption->outcome == Outcome::open) preemption->outcome = Outcome::withdrawn;
      preemption->ended = now;
    }
  } else if (const auto* stopped = std::get_if<StopAsked>(&decision)) {
    if (stopped->reason != StopReason::contract_breach) return;
    if (Preemption* preemption = asking_of(stopped->allocation)) {
      preemption->outcome = Outcome::failed;
    }
  } else if (const auto* killed = std::get_if<KillAsked>(&decision)) {
    // A task that was asked before is being ended for something else.
    if (!is_preemption(killed->reason) || asking_of(killed->allocation) != nullptr) return;
    Preemption made;
    made.task = killed->task;
    made.allocation = killed->allocation;
    made.mode = ReleaseMode::kill;
    made.asked = made.promised = now;
    ask(state, std::move(made));
  }
}

std::uint32_t PreemptionBook::queue_of(const PoolState& state, const TaskState& task) {
  const std::string& tier = state.tier(task.tier).name;
  const auto found = std::find_if(queues_.begin(), queues_.end(), [&](const Queue& queue) {
    return queue.team == task.spec.team && queue.tier == tier;
  });
  if (found == queues_.end()) {
    queues_.push_back({task.spec.team, tier});
    return static_cast<std::uint32_t>(queues_.size() - 1);
  }
  return static_cast<std::uint32_t>(found - queues_.begin());
}

// The newest asking of an allocation that is held.
Preemption* PreemptionBook::asking_of(AllocationId allocation) {
  const auto stay = held_.find(allocation);
  if (stay == held_.end() || stay->second.asking == no_asking) return nullptr;
  if (stay->second.asking < first_asking_) return nullptr;
  return &askings_[stay->second.asking - first_asking_];
}

void PreemptionBook::begin_wait(const PoolState& state, TaskId id, Time now) {
  const TaskState* task = state.tasks.find(id);
  if (!is_training(task) || task->phase != Phase::waiting) return;
  const std::int64_t milli = task->spec.request.count * task->spec.request.share.value;
  waiting_[id] = {queue_of(state, *task), now, Time::never(), milli, false};
}

void PreemptionBook::end_wait(TaskId id, Time now) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  found->second.to = now;
  keep(waits_, found->second);
  waiting_.erase(found);
}

void PreemptionBook::begin_stay(const PoolState& state, const TaskPlaced& placed, Time now) {
  end_wait(placed.task, now);
  const TaskState* task = state.tasks.find(placed.task);
  if (!is_training(task)) return;
  Stay stay;
  stay.task = placed.task;
  stay.held = {queue_of(state, *task), now, Time::never(), milli_of(placed.slots), false};
  stay.preemptions_before = task->preemptions;
  held_[placed.allocation] = stay;
}

void PreemptionBook::end_stay(const PoolState& state, AllocationId allocation, Time now) {
  const auto found = held_.find(allocation);
  if (found == held_.end()) return;
  Stay& stay = found->second;
  const TaskState* task = state.tasks.find(stay.task);
  const bool cut = task != nullptr && task->preemptions > stay.preemptions_before;
  Preemption* preemption = asking_of(allocation);
  if (preemption != nullptr && (preemption->outcome != Outcome::withdrawn || cut)) {
    if (preemption->outcome != Outcome::failed) preemption->outcome = Outcome::done;
    preemption->ended = now;
    if (task != nullptr) preemption->lost = task->lost - preemption->lost_before;
  }
  stay.held.to = now;
  stay.held.cut = cut || (preemption != nullptr && preemption->outcome == Outcome::failed);
  keep(stays_, stay.held);
  const TaskId id = stay.task;
  held_.erase(found);
  begin_wait(state, id, now);
}

void PreemptionBook::ask(const PoolState& state, Preemption asked) {
  const auto stay = held_.find(asked.allocation);
  if (stay == held_.end()) return;
  const TaskState& task = state.tasks.at(asked.task);
  asked.queue = queue_of(state, task);
  asked.lost_before = task.lost;
  stay->second.asking = first_asking_ + askings_.size();
  askings_.push_back(std::move(asked));
  if (askings_.size() <= preemptions_kept) return;
  complete_from_ = std::max(complete_from_, askings_.front().asked + Micros(1));
  askings_.pop_front();
  ++first_asking_;
}

void PreemptionBook::keep(std::deque<Stretch>& list, const Stretch& stretch) {
  if (stretch.to <= stretch.from) return;
  list.push_back(stretch);
  if (list.size() <= preemptions_kept) return;
  complete_from_ = std::max(complete_from_, list.front().to);
  list.pop_front();
}

// Tasks that were cancelled while they waited.
void PreemptionBook::drop_ended_waits(const PoolState& state) {
  std::vector<std::pair<TaskId, Time>> over;
  for (const auto& [id, wait] : waiting_) {
    const TaskState* task = state.tasks.find(id);
    if (task == nullptr) {
      over.emplace_back(id, wait.from);
    } else if (has_ended(task->phase)) {
      over.emplace_back(id, task->phase_since);
    }
  }
  for (const auto& [id, at] : over) end_wait(id, at);
}

// ---- snapshots -------------------------------------------------------------------------------

namespace {

template <class Item>
void put_list(Encoder& out, const std::deque<Item>& list) {
  out.put_unsigned(list.size());
  for (const Item& item : list) out.put(item);
}

template <class Item>
void get_list(Decoder& in, std::deque<Item>& list) {
  std::vector<Item> items;
  in.get(items);
  list.assign(items.begin(), items.end());
}

}  // namespace

void PreemptionBook::encode(Encoder& out) const {
  out.put_unsigned(queues_.size());
  for (const Queue& queue : queues_) {
    out.put(queue.team);
    out.put(queue.tier);
  }
  put_list(out, askings_);
  out.put_unsigned(first_asking_);
  put_list(out, stays_);
  put_list(out, waits_);
  out.put_unsigned(held_.size());
  for (const auto& [allocation, stay] : held_) {
    out.put(allocation);
    out.put(stay.held);
    out.put(stay.task);
    out.put(stay.preemptions_before);
    out.put(stay.asking);
  }
  out.put_unsigned(waiting_.size());
  for (const auto& [task, wait] : waiting_) {
    out.put(task);
    out.put(wait);
  }
  out.put(complete_from_);
  out.put_unsigned(records_);
}

void PreemptionBook::decode(Decoder& in) {
  *this = PreemptionBook();
  for (std::uint64_t left = in.get_unsigned(); left > 0 && !in.failed(); --left) {
    Queue& queue = queues_.emplace_back();
    in.get(queue.team);
    in.get(queue.tier);
  }
  get_list(in, askings_);
  first_asking_ = in.get_unsigned();
  get_list(in, stays_);
  get_list(in, waits_);
  for (std::uint64_t left = in.get_unsigned(); left > 0 && !in.failed(); --left) {
    AllocationId allocation;
    in.get(allocation);
    Stay& stay = held_[allocation];
    in.get(stay.held);
    in.get(stay.task);
    in.get(stay.preemptions_before);
    in.get(stay.asking);
  }
  for (std::uint64_t left = in.get_unsigned(); left > 0 && !in.failed(); --left) {
    TaskId task;
    in.get(task);
    in.get(waiting_[task]);
  }
  in.get(complete_from_);
  records_ = in.get_unsigned();
}

}  // namespace neap::ledger
