#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

void print_start(Terminal& terminal, const Value& report) {
  const std::int64_t age = report.number_at("forecast_age_us", -1);
  if (age < 0) {
    // It came after the last forecast was made.
    if (report.number_at("place", -1) > 0) {
      terminal.line("when it starts is not foretold yet: ask again in half a minute");
    }
    return;
  }
  const std::string text =
      start_text(report, "start_p50_us", "start_p90_us", report.at("pool").number_at("now_us"));
  terminal.line("starts within " + text + " (forecast " + length_text(age) + " old, " +
                std::to_string(report.number_at("forecast_draws")) + " draws)");
}

}  // namespace

int why(const Context& context, const NamedOptions& options) {
  std::string body;
  const auto report = context.get("/v1/tasks/" + part(options.name) + "/why", &body);
  if (!report) {
    if (report.error().code != ErrorCode::not_found) return context.failed(report.error());
    const auto pipeline = context.get("/v1/pipelines/" + part(options.name));
    return pipeline ? describe_pipeline(context, options) : context.failed(report.error());
  }
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  print_pool(terminal, report->at("pool"));
  const Value& task = report->at("task");
  const std::string& state = task.text_at("state");
  terminal.line(harmless(task.text_at("name")) + " (" + terminal.painted(state, colour_of(state)) +
                "): " + harmless(report->text_at("reason")));
  const std::int64_t place = report->number_at("place", -1);
  if (place > 0) {
    terminal.line("place " + std::to_string(place) + " of " +
                  std::to_string(report->number_at("queue_length")) + " in the queue");
  }
  const std::int64_t estimate = report->number_at("estimate_us", -1);
  if (estimate >= 0) terminal.line("room is kept for it: there at " + moment_text(estimate));
  print_start(terminal, *report);
  if (!report->text_at("promise").empty()) terminal.line(harmless(report->text_at("promise")));
  if (!report->list_at("unblocks").empty()) terminal.line("\nit would start if:");
  for (const Value& change : report->list_at("unblocks")) {
    terminal.line("  - " + harmless(change.text));
  }
  if (!report->list_at("admission").empty()) terminal.line("\nadmission:");
  for (const Value& check : report->list_at("admission")) {
    terminal.line("  " + harmless(check.text_at("name")) + ": " +
                  terminal.painted(check.text_at("state"), colour_of(check.text_at("state"))) +
                  (check.text_at("message").empty() ? "" : ", ") +
                  harmless(check.text_at("message")));
  }
  return 0;
}

}  // namespace neap::cli
