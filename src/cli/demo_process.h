// Processes of the demonstration: the daemon, and what must not be left behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/demo_files.h"
#include "core/model/result.h"
#include "core/model/units.h"
#include "posix/fd.h"

namespace neap::cli {

// Runs a program without output; its exit code, 128 + signal.
[[nodiscard]] Result<int> run_to_end(std::vector<std::string> words);

// The daemon in a session of its own: Ctrl-C at the terminal reaches the demonstration alone.
class DemoDaemon {
 public:
  explicit DemoDaemon(const DemoFiles& files) : files_(files) {}
  DemoDaemon(const DemoDaemon&) = delete;
  DemoDaemon& operator=(const DemoDaemon&) = delete;
  ~DemoDaemon() { stop(seconds(10)); }

  [[nodiscard]] Result<void> start();
  // Waits until the API answers. The end of its log is in the error when the daemon ends first.
  [[nodiscard]] Result<void> wait_ready(Micros patience);
  [[nodiscard]] bool alive();
  void stop(Micros patience);
  void keep() { pid_ = 0; }  // leaves it to itself
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  const DemoFiles& files_;
  pid_t pid_ = 0;
  posix::Fd pid_fd_;
};

[[nodiscard]] std::string tail_of(const std::string& path);
// Daemon, supervisors, proxy and tasks of the pool in this folder. Where the daemon could not end
// what it had started, these are what is left.
[[nodiscard]] std::vector<pid_t> processes_of(const std::string& folder);
// SIGTERM, then SIGKILL for those that are still there after `patience`.
void end_processes(const std::vector<pid_t>& processes, Micros patience);

}  // namespace neap::cli
