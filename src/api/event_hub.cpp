#include "api/event_hub.h"

#include <utility>

namespace neap::api {

void EventHub::push(std::span<const EventRow> batch) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, listener] : listeners_) listener(batch);
}

std::uint64_t EventHub::listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  listeners_.emplace(id, std::move(listener));
  return id;
}

void EventHub::forget(std::uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

}  // namespace neap::api
