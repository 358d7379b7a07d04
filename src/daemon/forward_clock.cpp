#include "daemon/forward_clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace neap::daemon {

namespace {

template <class Clock>
Time read() {
  const auto since = Clock::now().time_since_epoch();
  return Time(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace

ForwardClock::ForwardClock(Source wall, Source steady)
    : wall_(std::move(wall)), steady_(std::move(steady)), last_(wall_()), last_steady_(steady_()) {}

ForwardClock::ForwardClock()
    : ForwardClock(&read<std::chrono::system_clock>, &read<std::chrono::steady_clock>) {}

Time ForwardClock::now() {
  const std::scoped_lock lock(mutex_);
  const Time steady = steady_();
  last_ = std::max(wall_(), last_ + (steady - last_steady_));
  last_steady_ = steady;
  return last_;
}

void ForwardClock::not_before(Time time) {
  const std::scoped_lock lock(mutex_);
  last_ = std::max(last_, time);
}

}  // namespace neap::daemon
