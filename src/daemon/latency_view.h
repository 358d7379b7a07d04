// What the gateway and the engines know of a service's requests, as the API shows it.
#pragma once

#include "api/latency.h"
#include "gateway/gateway.h"

namespace neap::daemon {

void view_latency(const gateway::ServiceLatency& latency, api::LatencyReport& into);
// "fast: 1h 20.0, 5min 31.0 times what its objective allows"; "" without an alarm.
[[nodiscard]] std::string burn_text(const measure::BurnReport& burn);

}  // namespace neap::daemon
