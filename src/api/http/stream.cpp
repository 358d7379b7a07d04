#include "api/http/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace neap::api::http {

Stream::Stream(std::size_t pending_max, Line line)
    : pending_max_(pending_max), line_(std::move(line)) {}

bool Stream::send(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (gone_ || finished_ || overrun_) return false;
  if (pending_.size() - taken_ + bytes.size() > pending_max_) {
    overrun_ = true;
    line_.cut();
    wake();
    return false;
  }
  if (taken_ > pending_max_ / 2) {
    pending_.erase(0, taken_);
    taken_ = 0;
  }
  pending_.append(bytes);
  wake();
  return true;
}

void Stream::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  if (!gone_) wake();
}

bool Stream::open() const {
  const std::lock_guard lock(mutex_);
  return !gone_ && !finished_ && !overrun_;
}

std::size_t Stream::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size() - taken_;
}

void Stream::wake() {
  if (!suspended_) return;
  suspended_ = false;
  line_.resume();
}

Stream::Take Stream::take(char* into, std::size_t max) {
  const std::lock_guard lock(mutex_);
  if (overrun_) return {Taken::broken, 0};
  const std::size_t count = std::min(max, pending_.size() - taken_);
  if (count > 0) {
    std::memcpy(into, pending_.data() + taken_, count);
    taken_ += count;
    if (taken_ == pending_.size()) {
      pending_.clear();
      taken_ = 0;
    }
    return {Taken::bytes, count};
  }
  if (finished_) return {Taken::end, 0};
  suspended_ = true;
  line_.suspend();
  return {Taken::nothing, 0};
}

void Stream::disconnect() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  suspended_ = false;
}

std::string event_text(std::string_view id, std::string_view name, std::string_view data) {
  std::string text;
  if (!id.empty()) text.append("id: ").append(id).append("\n");
  if (!name.empty()) text.append("event: ").append(name).append("\n");
  return text.append("data: ").append(data).append("\n\n");
}

}  // namespace neap::api::http
