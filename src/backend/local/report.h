// What the supervisor of an allocation tells the daemon. Sequences are gapless from 1 within one
// epoch of one allocation; a report is durable before it is sent and kept until acknowledged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

struct Started {  // the task's program runs
  std::int32_t pid = 0;
  std::vector<std::string> not_enforced;  // limits that this machine or this user cannot set
};
struct Ready {};  // a service answers its health check
struct Unready {
  std::string reason;
};
struct Hello {  // a process of the task speaks the contract
  std::int64_t version = 0;
  std::vector<std::string> capabilities;
};
struct Steps {  // `count` steps, the newest is `last`, in `busy` time; at most 10 s of them
  std::int64_t last = 0;
  std::int64_t count = 0;
  Micros busy;
};
struct Checkpoint {  // durable, so the task can resume from it
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  Micros save;
  Time captured;  // the moment whose state it holds
  Micros stall;   // how long training stood still for it
};
struct Yielding {
  std::int64_t step = 0;
};
struct Exited {           // the main process ended and nothing that it started is left
  std::int32_t code = 0;  // meaningful when signal is 0
  std::int32_t signal = 0;
  std::int64_t oom_kills = 0;
  Time ended;  // of the main process
  std::int64_t contract_faults = 0;
  std::string detail;
};
struct StartFailed {  // nothing of the task ever ran
  std::string reason;
};
struct Lost {  // ended without a known exit status; nothing of it is left
  std::string reason;
};
struct ContractFault {    // the first malformed line; later ones are only counted, see Exited
  std::int64_t line = 0;  // of its connection
  std::string reason;
};

using ReportBody = std::variant<Started, Ready, Unready, Hello, Steps, Checkpoint, Yielding, Exited,
                                StartFailed, Lost, ContractFault>;

struct Report {
  AllocationId allocation;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  Time at;
  ReportBody body;

  // After a terminal report nothing of the allocation is left, and no report follows.
  [[nodiscard]] bool terminal() const {
    return std::holds_alternative<Exited>(body) || std::holds_alternative<StartFailed>(body) ||
           std::holds_alternative<Lost>(body);
  }
};

inline constexpr std::size_t report_line_limit = 128 * 1024;

// One line of JSON without the line feed. It begins with {"sequence":N, on which the spool relies.
[[nodiscard]] std::string report_line(const Report& report);
[[nodiscard]] Result<Report> parse_report_line(std::string_view line);
// The sequence at the front of a report line, without parsing the rest.
[[nodiscard]] std::optional<std::uint64_t> sequence_of(std::string_view line);

}  // namespace neap::local
