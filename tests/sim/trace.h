// Records as lines of text, for whoever looks into a seed: NEAP_SIM_TRACE=1.
#pragma once

#include <string>

#include "core/model/events.h"

namespace neap::sim {

[[nodiscard]] std::string trace_line(Time time, std::uint64_t sequence, const Event& event);
[[nodiscard]] std::string trace_line(Time time, std::uint64_t sequence, const Decision& decision);

}  // namespace neap::sim
