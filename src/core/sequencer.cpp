#include "core/sequencer.h"

#include <utility>

namespace neap {

void Sequencer::restore(const PoolState& state) {
  sources_.clear();
  ended_below_ = AllocationId(state.next_allocation);
  state.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) return;
    Source& source = sources_[task.allocation];
    source.epoch = task.report_epoch;
    source.next = task.report_sequence + 1;
  });
}

void Sequencer::admit(Event event, std::vector<Event>& ready) {
  const ReportStamp* found = stamp_of(event);
  if (found == nullptr) {
    ready.push_back(std::move(event));
    return;
  }
  const ReportStamp stamp = *found;  // `event` is moved from below
  const auto known = sources_.find(stamp.source);
  if (known == sources_.end() && stamp.source < ended_below_) return;
  Source& source = known != sources_.end() ? known->second : sources_[stamp.source];
  if (stamp.epoch < source.epoch) return;
  if (stamp.epoch > source.epoch) {
    // What the old life of the source still had in flight is reported again by the new one.
    source = Source{.epoch = stamp.epoch};
  }
  if (stamp.sequence < source.next) return;
  if (stamp.sequence > source.next) {
    if (source.waiting.size() < max_waiting)
      source.waiting.emplace(stamp.sequence, std::move(event));
    return;
  }
  ready.push_back(std::move(event));
  ++source.next;
  while (!source.waiting.empty() && source.waiting.begin()->first == source.next) {
    ready.push_back(std::move(source.waiting.begin()->second));
    source.waiting.erase(source.waiting.begin());
    ++source.next;
  }
}

bool Sequencer::is_old(const ReportStamp& stamp) const {
  const auto known = sources_.find(stamp.source);
  if (known == sources_.end()) return stamp.source < ended_below_;
  const Source& source = known->second;
  return stamp.epoch < source.epoch ||
         (stamp.epoch == source.epoch && stamp.sequence < source.next);
}

void Sequencer::forget(AllocationId source) {
  // Whoever lies below the mark without an entry has ended: sources that have not reported yet
  // get their entry before the mark passes them.
  for (; ended_below_ <= source; ++ended_below_.value) sources_.try_emplace(ended_below_);
  sources_.erase(source);
}

}  // namespace neap
