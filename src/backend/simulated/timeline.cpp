#include "backend/simulated/timeline.h"

#include <algorithm>
#include <utility>

namespace neap::simulated {

void Timeline::at(Time when, Act act) {
  entries_.push_back({std::max(when, now_), order_++, std::move(act)});
  std::push_heap(entries_.begin(), entries_.end());
}

Time Timeline::next() const { return entries_.empty() ? Time::never() : entries_.front().when; }

bool Timeline::run_next() {
  if (entries_.empty()) return false;
  std::pop_heap(entries_.begin(), entries_.end());
  const Entry entry = std::move(entries_.back());
  entries_.pop_back();
  now_ = entry.when;
  entry.act();
  return true;
}

void Timeline::run_until(Time end) {
  while (next() <= end) run_next();
  now_ = std::max(now_, end);
}

}  // namespace neap::simulated
