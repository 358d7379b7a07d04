// The executable: hands the command line to the verbs of src/cli.
#include <cstdio>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "core/model/result.h"
#include "daemon/daemon.h"

namespace {

int report(neap::cli::Terminal& terminal, const neap::Result<void>& done) {
  if (done) return 0;
  const neap::Error& error = done.error();
  terminal.complain((error.context.empty() ? "neap: " : "") + to_string(error));
  return neap::exit_code_of(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  neap::cli::Terminal terminal(stdout, stderr);
  neap::cli::Program program;
  program.version = NEAP_VERSION;
  program.serve = [&](const neap::cli::ServeOptions& options) {
    return report(terminal, neap::daemon::serve({.pool_file = options.pool_file,
                                                 .state_dir = options.state_dir,
                                                 .socket = options.socket,
                                                 .supervisor = ""}));
  };
  program.verify_journal = [&](const std::string& state_dir) {
    return report(terminal, neap::daemon::verify_journal(state_dir));
  };
  return neap::cli::run_command_line(argc, argv, program, terminal);
}
