// The port through which decisions reach the world. Three implementations: simulated (virtual
// time), local (processes on this machine), kubernetes (pods).
#pragma once

#include <functional>

#include "core/model/events.h"

namespace neap {

class Backend {
 public:
  // Receives reports, from any thread. Those with a stamp may come twice or out of order; they
  // are sent again until acknowledge() covers them.
  using Sink = std::function<void(Event)>;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Never blocks and never fails: what cannot be done comes back as a report (StartFailed,
  // TaskExited). Idempotent by allocation id.
  virtual void carry_out(const Action& action) = 0;

  // Everything of this source up to `stamp.sequence` is durable in the journal.
  virtual void acknowledge(const ReportStamp& stamp) = 0;
};

}  // namespace neap
