// neap ladder: what is fought over beside a service or a task, and which rung it stands on.
#include <array>
#include <cstdio>

#include "cli/contention.h"
#include "cli/format.h"

namespace neap::cli {
namespace {

std::string milli_at(const Value& row, const char* member) {
  const std::int64_t value = row.number_at(member, -1);
  return value < 0 ? "-" : fixed(static_cast<double>(value) / 1000, 1);
}

void print_evidence(Terminal& terminal, const Value& report) {
  Table table({"SIGNAL", "NOW", "COUNTS FROM", ""});
  for (const Value& row : report.list_at("evidence")) {
    table.add({{harmless(row.text_at("signal"))},
               {milli_at(row, "value_milli")},
               {row.number_at("limit_milli") > 0 ? milli_at(row, "limit_milli") : "-"},
               {row.text_at("unit")}});
  }
  if (!table.empty()) table.print(terminal);
  std::string unknown;
  for (const Value& signal : report.list_at("unknown")) {
    unknown += (unknown.empty() ? "" : ", ") + harmless(signal.text);
  }
  if (!unknown.empty()) terminal.line("not known here: " + unknown);
}

void print_cost(Terminal& terminal, const Value& report) {
  const std::int64_t now = report.number_at("training_steps_milli_per_s", -1);
  const std::int64_t before = report.number_at("training_steps_before_milli_per_s", -1);
  if (now < 0) return;
  std::string text = "training: " + milli_at(report, "training_steps_milli_per_s") + " steps/s";
  if (before > 0) {
    text +=
        ", " + milli_at(report, "training_steps_before_milli_per_s") + " before the first rung (" +
        fixed(100.0 * static_cast<double>(now - before) / static_cast<double>(before), 0) + " %)";
  }
  terminal.line(text);
}

void print_moves(Terminal& terminal, const Value& report) {
  for (const Value& move : report.list_at("moves")) {
    const std::string& fault = move.text_at("fault");
    terminal.line(moment_text(move.number_at("at_us")) + "  " + move.text_at("from") + " -> " +
                  move.text_at("to") + " (" + move.text_at("resource") + ")" +
                  (fault.empty() ? "" : " not possible: " + harmless(fault)) + "; " +
                  harmless(move.text_at("why")));
  }
}

}  // namespace

Result<std::string> work_path(const Context& context, const std::string& name) {
  const std::string service = "/v1/services/" + part(name);
  const auto found = context.get(service);
  if (found) return service;
  if (found.error().code != ErrorCode::not_found) return tl::unexpected(found.error());
  return "/v1/tasks/" + part(name);
}

int ladder(const Context& context, const NamedOptions& options) {
  const auto path = work_path(context, options.name);
  if (!path) return context.failed(path.error());
  std::string body;
  const auto report = context.get(*path + "/contention", &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  print_pool(terminal, report->at("pool"));
  const std::string& resource = report->text_at("resource");
  std::string said = "quiet: nothing is fought over";
  if (resource == "own load") said = "slow by its own load";
  if (resource != "none" && resource != "own load") said = "fought over: " + resource;
  if (report->number_at("windows") == 0) {
    said = report->text_at("mode") == "off" ? "not watched: ladder.mode is off" : "not watched yet";
  }
  const std::string& neighbour = report->text_at("neighbour");
  if (!neighbour.empty()) said += ", with " + harmless(neighbour);
  said += " (confidence " + part_text(report->number_at("confidence_ppm")) + ")";
  if (report->number_at("slowdown_milli", -1) >= 0) {
    said += "; " + milli_at(*report, "slowdown_milli") + " times as slow as alone or promised";
  }
  terminal.line(said);
  print_evidence(terminal, *report);
  terminal.line("ladder: " + report->text_at("mode") + ", rung " + report->text_at("rung") +
                (report->text_at("rung_resource") == "none"
                     ? ""
                     : " for " + report->text_at("rung_resource")));
  if (!report->text_at("next").empty()) {
    terminal.line("recommended: rung " + report->text_at("next") + " (ladder.mode: auto takes it)");
  }
  for (const Value& closed : report->list_at("closed")) {
    terminal.line("not here: " + harmless(closed.text));
  }
  print_cost(terminal, *report);
  print_moves(terminal, *report);
  return 0;
}

}  // namespace neap::cli
