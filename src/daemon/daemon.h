// The composition root: opens the journal, backend, gateway and API, and runs the loop.
#pragma once

#include <string>

#include "core/model/result.h"

namespace neap::daemon {

struct DaemonOptions {
  std::string pool_file;
  std::string state_dir;   // overrides the file's, when given
  std::string socket;      // overrides the file's, when given
  std::string supervisor;  // the neap-supervise program; empty: beside this executable
};

// Serves until SIGTERM or SIGINT (tasks go on) or a failure. Prints one line when it is ready.
[[nodiscard]] Result<void> serve(const DaemonOptions& options);

// Replays the journal of a state directory twice, from its first record and from its newest
// snapshot, and prints both hashes; an error when they differ or the journal is damaged.
[[nodiscard]] Result<void> verify_journal(const std::string& state_dir);

}  // namespace neap::daemon
