#include "backend/simulated/timeline.h"

#include <algorithm>
#include <utility>

namespace neap::simulated {

void Timeline::at(Time when, Act act) {
  entries_.push({std::max(when, now_), order_++, std::move(act)});
}

Time Timeline::next() const { return entries_.empty() ? Time::never() : entries_.top().when; }

bool Timeline::run_next() {
  if (entries_.empty()) return false;
  Entry entry = entries_.top();
  entries_.pop();
  now_ = entry.when;
  entry.act();
  return true;
}

void Timeline::run_until(Time end) {
  while (next() <= end) run_next();
  now_ = std::max(now_, end);
}

}  // namespace neap::simulated
