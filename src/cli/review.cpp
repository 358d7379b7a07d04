#include "cli/adoption.h"
#include "cli/format.h"
#include "config/values.h"

namespace neap::cli {

namespace {

std::string proposal_of(const Value& report) {
  if (!report.text_at("preset_next").empty()) {
    return "pool.preset: " + report.text_at("preset_next");
  }
  if (report.number_at("guard_next", -1) < 0) return "no change";
  return "pool.inference_guard_min: " + std::to_string(report.number_at("guard_next")) +
         ", pool.elastic_buffer: " + std::to_string(report.number_at("buffer_next"));
}

}  // namespace

int review(const Context& context, const ReviewOptions& options) {
  std::string path = "/v1/review";
  if (!options.week.empty()) {
    const auto from = config::parse_moment(options.week + "T00:00:00Z");
    if (!from) {
      return context.failed({ErrorCode::invalid_argument,
                             "\"" + options.week + "\" is no day; expected one such as 2027-11-08",
                             "--week"});
    }
    path += "?from_us=" + std::to_string(from->us);
  }
  std::string body;
  const auto report = context.get(path, &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  terminal.line("the week from " + moment_text(report->number_at("from_us")) + " to " +
                moment_text(report->number_at("to_us")));
  for (const Value& line : report->list_at("evidence")) terminal.line("  " + line.text);
  terminal.line(report->text_at("verdict") + ": " + report->text_at("why"));
  if (report->text_at("verdict") != "too-little-data") {
    terminal.line("proposed: " + proposal_of(*report));
  }
  return 0;
}

}  // namespace neap::cli
