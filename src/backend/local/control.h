// What the daemon says to a supervisor, one JSON object a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "backend/local/contract.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

inline constexpr std::size_t control_line_limit = 4096;

struct ResumeAfter {  // send the reports behind this one
  std::uint64_t sequence = 0;
};
struct Acknowledge {  // these are durable in the journal
  std::uint64_t sequence = 0;
};
struct RequestCheckpoint {
  Time by = Time::never();
};
struct RequestYield {
  YieldAt at = YieldAt::boundary;
  Time by = Time::never();
};
struct WithdrawYieldRequest {};
struct Drain {};    // a service: not ready from now on
struct Terminate {  // SIGTERM to the process group; at `kill_at` as Kill, if it still runs
  Time kill_at = Time::never();
};
struct Kill {};  // SIGKILL to all of it, until nothing is left

using ControlCommand = std::variant<ResumeAfter, Acknowledge, RequestCheckpoint, RequestYield,
                                    WithdrawYieldRequest, Drain, Terminate, Kill>;

[[nodiscard]] std::string control_line(const ControlCommand& command);  // with its line feed
[[nodiscard]] Result<ControlCommand> parse_control_line(std::string_view line);

}  // namespace neap::local
