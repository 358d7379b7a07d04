#include "cli/format.h"
#include "cli/machine_checks.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

// The daemon's own checks, or that there is none.
std::vector<Check> check_daemon(const Context& context) {
  const auto answer = context.get("/v1/doctor");
  if (!answer) {
    const bool absent = answer.error().code == ErrorCode::unavailable;
    return {{"daemon", absent ? "warning" : "failed", to_string(answer.error()),
             absent ? "neap serve" : "ask whoever runs the daemon"}};
  }
  std::vector<Check> checks = {{"daemon", "ok", "answers", ""}};
  for (const Value& check : answer->list_at("checks")) {
    checks.push_back({"daemon: " + check.text_at("name"), check.text_at("state"),
                      check.text_at("message"), check.text_at("remedy")});
  }
  return checks;
}

std::string to_json(const std::vector<Check>& checks) {
  std::string text = "{\"checks\":[";
  for (const Check& check : checks) {
    text += (text.ends_with('[') ? "" : ",") + json_object({{"name", check.name},
                                                            {"state", check.state},
                                                            {"message", check.message},
                                                            {"remedy", check.remedy}});
  }
  return text + "]}";
}

}  // namespace

int doctor(const Context& context, const Listing& options) {
  std::vector<Check> checks = check_machine(this_machine());
  for (Check& check : check_daemon(context)) checks.push_back(std::move(check));
  bool failed = false;
  for (const Check& check : checks) failed = failed || check.state == "failed";
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(to_json(checks));
  } else {
    Table table({"CHECK", "STATE", "FOUND", "REMEDY"});
    for (const Check& check : checks) {
      table.add(
          {{check.name}, {check.state, colour_of(check.state)}, {check.message}, {check.remedy}});
    }
    table.print(terminal);
  }
  return failed ? exit_code_of(ErrorCode::unavailable) : 0;
}

}  // namespace neap::cli
