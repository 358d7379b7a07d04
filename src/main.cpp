// The executable: the command line, and the daemon behind `neap serve`.
#include <cstdio>

#include "cli/command_line.h"
#include "cli/demo.h"
#include "daemon/daemon.h"

#ifndef NEAP_VERSION
#define NEAP_VERSION "0.1.0"
#endif

namespace {

int report(const neap::Result<void>& result) {
  if (result) return 0;
  std::fprintf(stderr, "neap: %s\n", neap::to_string(result.error()).c_str());
  return neap::exit_code_of(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
  neap::cli::Program program;
  program.version = NEAP_VERSION;
  program.serve = [](const neap::cli::ServeOptions& options) {
    return report(neap::daemon::serve({options.pool_file, options.state_dir, options.socket, {}}));
  };
  program.verify_journal = [](const std::string& state_dir) {
    return report(neap::daemon::verify_journal(state_dir));
  };
  neap::cli::Terminal terminal(stdout, stderr);
  program.demo = [&](const std::vector<std::string>& words) {
    return neap::cli::demo(words, terminal);
  };
  return neap::cli::run_command_line(argc, argv, program, terminal);
}
