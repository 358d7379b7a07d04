// The daemon's time: that of the wall, but never backwards and never at a standstill. When the
// machine's clock is set back, time goes on at its usual pace until the clock has caught up; else
// nothing that waits for a moment (back-off, grace, protected windows) would happen until then.
#pragma once

#include <functional>
#include <mutex>

#include "core/model/units.h"

namespace neap::daemon {

class ForwardClock {
 public:
  using Source = std::function<Time()>;

  ForwardClock(Source wall, Source steady);
  // Those of this machine.
  ForwardClock();

  // Any thread.
  [[nodiscard]] Time now();
  // What has happened already, before a restart, is not in the future.
  void not_before(Time time);

 private:
  const Source wall_;
  const Source steady_;
  std::mutex mutex_;
  Time last_;
  Time last_steady_;
};

}  // namespace neap::daemon
