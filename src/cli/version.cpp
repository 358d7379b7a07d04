#include "cli/verbs.h"

namespace neap::cli {

int version(const Context& context, const VersionOptions& options) {
  Terminal& terminal = context.terminal();
  std::string body;
  const auto daemon = context.get("/v1/version", &body);
  if (options.json) {
    terminal.line("{\"version\":" + json_text(options.own) +
                  ",\"daemon\":" + (daemon ? body : "null") + "}");
    return 0;
  }
  terminal.line("neap " + options.own);
  if (daemon) {
    terminal.line("daemon " + daemon->text_at("version") + ", journal schema " +
                  daemon->text_at("journal_schema"));
  } else {
    terminal.line("daemon: " + to_string(daemon.error()));
  }
  return 0;
}

}  // namespace neap::cli
