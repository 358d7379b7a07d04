#include "simulate/run/recorded_use.h"

#include <algorithm>
#include <filesystem>

#include "core/model/codec.h"
#include "journal/reader.h"

namespace neap::whatif {

void UseRecording::pass(Time now) {
  if (!begun_) {
    begun_ = true;
    first_ = now_ = now;
    return;
  }
  const std::int64_t from = (now_ - first_).value, until = (now - first_).value;
  const bool taken = training_.hold(from, until, training_milli_) &&
                     inference_.hold(from, until, inference_milli_);
  too_long_ = too_long_ || !taken;
  now_ = now;
}

void UseRecording::note(Time now, const Event& event) {
  pass(now);
  if (const auto* joined = std::get_if<NodeJoined>(&event)) {
    up_.insert(joined->spec.name);
    if (!known_.insert(joined->spec.name).second) return;
    node_of_.insert(node_of_.end(), joined->spec.devices.size(), joined->spec.name);
  } else if (const auto* lost = std::get_if<NodeLost>(&event)) {
    lose(lost->node);
  } else if (const auto* exited = std::get_if<TaskExited>(&event)) {
    release(exited->stamp.source);
  } else if (const auto* failed = std::get_if<StartFailed>(&event)) {
    release(failed->stamp.source);
  }
}

void UseRecording::note(Time now, const Decision& decision) {
  pass(now);
  if (const auto* added = std::get_if<ReplicaAdded>(&decision)) replicas_.insert(added->task);
  const auto* placed = std::get_if<TaskPlaced>(&decision);
  if (placed == nullptr) return;
  Held held;
  held.inference = replicas_.contains(placed->task);
  for (const Slot& slot : placed->slots) {
    held.milli += slot.share.value;
    if (slot.device.value < node_of_.size()) held.nodes.insert(node_of_[slot.device.value]);
  }
  (held.inference ? inference_milli_ : training_milli_) += held.milli;
  held_.emplace(placed->allocation, std::move(held));
}

void UseRecording::release(AllocationId allocation) {
  const auto found = held_.find(allocation);
  if (found == held_.end()) return;
  (found->second.inference ? inference_milli_ : training_milli_) -= found->second.milli;
  held_.erase(found);
}

// A gang goes on holding its devices while a part of it is on a node that is there.
void UseRecording::lose(const std::string& node) {
  up_.erase(node);
  std::vector<AllocationId> gone;
  for (const auto& [allocation, held] : held_) {
    const bool lives = std::any_of(held.nodes.begin(), held.nodes.end(),
                                   [&](const std::string& n) { return up_.contains(n); });
    if (held.nodes.contains(node) && !lives) gone.push_back(allocation);
  }
  for (const AllocationId allocation : gone) release(allocation);
}

Result<RecordedUse> UseRecording::finish() const {
  if (too_long_) {
    return fail(ErrorCode::invalid_argument, "expected at most 1000000 slots; take longer ones",
                "slot");
  }
  return RecordedUse{training_.take(), inference_.take()};
}

Result<RecordedUse> read_use_of_journal(const std::string& path, Micros slot) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  auto reader = journal::Reader::open(folder ? path + "/journal.db" : path);
  if (!reader) return tl::unexpected(reader.error());
  const auto first = reader->first_sequence();
  if (!first) return tl::unexpected(first.error());
  auto cursor = reader->from(*first);
  if (!cursor) return tl::unexpected(cursor.error());
  UseRecording recording(slot);
  while (true) {
    const auto record = cursor->next();
    if (!record) return tl::unexpected(record.error());
    if (!*record) return recording.finish();
    const journal::RecordView& view = **record;
    const std::string_view bytes(reinterpret_cast<const char*>(view.payload.data()),
                                 view.payload.size());
    if (view.kind == journal::RecordKind::event || view.kind == journal::RecordKind::aggregate) {
      const auto event = decode_event(bytes);
      if (!event) return tl::unexpected(event.error());
      recording.note(view.time, *event);
    } else {
      const auto decision = decode_decision(bytes);
      if (!decision) return tl::unexpected(decision.error());
      recording.note(view.time, *decision);
    }
  }
}

}  // namespace neap::whatif
