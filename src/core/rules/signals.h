// What is told of a service's load (SPEC D5, S13; POLICIES 3; docs/decisions/0020): use, queue and
// latency. Any of them above its threshold calls for one replica more, one less takes all of them.
// One that was told before and is not now makes the load unknown, and unknown changes nothing.
#pragma once

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

// The bound on the p95 of the time to the first byte: its own, else the service's objective.
[[nodiscard]] std::optional<Micros> first_byte_bound(const ServiceSpec& service,
                                                     const ScaleSpec& scale);

// Its last replica may go: it served, and nobody has asked for so long.
[[nodiscard]] bool may_sleep(const PoolState& state, const ServiceState& service, Time now);

// ---- for apply -------------------------------------------------------------------------------

// One replica has gone: what it means for the others is seen anew, for the whole time (cool-down).
void begin_windows(const PoolState& state, ServiceState& service);
// A sample: since when it has been above or below, or idle, and whether it is to wake.
void note_signals(const PoolState& state, ServiceState& service, const ServiceMeasured& sample);

}  // namespace neap
