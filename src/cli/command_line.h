// From the words of a command line to a verb and its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace neap::cli {

struct ServeOptions {
  std::string pool_file;
  std::string state_dir;  // empty: the file's
  std::string socket;     // empty: the file's
};

// What the command line cannot do itself: it knows the daemon through its API alone.
struct Program {
  std::string version;
  std::function<int(const ServeOptions&)> serve;
  std::function<int(const std::string& state_dir)> verify_journal;
  // The demonstration, with its words as they were given; absent where it is not installed.
  std::function<int(const std::vector<std::string>&)> demo;
};

// Exit codes: 0, those of core/model/result.h, and for `run` that of the task.
[[nodiscard]] int run_command_line(int argc, const char* const* argv, const Program& program,
                                   Terminal& terminal);

}  // namespace neap::cli
