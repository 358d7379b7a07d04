// The proxy's runtime API: one command, one answer, over a UNIX socket. Costs about 50 µs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::gateway {

struct ServerRow {
  std::string backend;
  std::string server;
  std::uint16_t port = 0;
  std::int32_t max_concurrency = 0;
  std::int64_t in_flight = 0;
  std::int64_t queued = 0;  // for this server alone
  bool up = false;          // neither draining nor in maintenance
};

struct BackendRow {
  std::string backend;
  std::int64_t queued = 0;  // in the queue that its servers share
};

struct ProxyStatistics {
  std::vector<ServerRow> servers;
  std::vector<BackendRow> backends;
};

struct WorkerList {
  pid_t current = 0;  // 0: none, as after a reload that failed
  std::vector<pid_t> old;
};

// Sends `command` and reads the answer to its end. `unavailable` when nobody listens, or when the
// answer takes more than two seconds or 64 MiB.
[[nodiscard]] Result<std::string> run_command(const std::string& socket_path,
                                              std::string_view command);
// The process that listens on a socket; `unavailable` when none does.
[[nodiscard]] Result<pid_t> listener_of(const std::string& socket_path);

// Readers of answers, for `show stat -1 6 -1` and for the master's `show proc`.
[[nodiscard]] Result<ProxyStatistics> read_statistics(std::string_view csv);
[[nodiscard]] WorkerList read_workers(std::string_view text);

}  // namespace neap::gateway
