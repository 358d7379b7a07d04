#include <string>

#include "cli/guard.h"

namespace neap::cli {

int guard_backtest(const Context& context, const GuardOptions& options) {
  const auto study = guard_study(options);
  if (!study) return context.failed(as_typed(study.error()));
  const auto result = simulate::backtest(study->spec, study->demand);
  if (!result) return context.failed(as_typed(result.error()));
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line("{" + json_of(*study, *result) + "}");
    return 0;
  }
  const lead_time::GuardSpec& rule = study->spec.rule.guard;
  const std::int64_t slots = result->scored.last - result->scored.first + 1;
  Table table({"FIGURE", "VALUE"});
  const auto row = [&](std::string name, std::string value) {
    table.add({{std::move(name)}, {std::move(value)}});
  };
  row("stated violations (x)", percent_text(std::int64_t{rule.violations_per_mille} * 1'000));
  row("violated hours", std::to_string(result->violated_hours) + " of " +
                            std::to_string(result->scored_hours) + ", " +
                            percent_text(result->violated_ppm()));
  row("  with the buffer", std::to_string(result->violated_with_buffer));
  row("idle reserve", short_text(result->idle_ppm(), 3) + " of the demand");
  row("mean guard", short_text(result->sum_c * 1'000'000 / slots, 1) + " of " +
                        std::to_string(rule.devices) + " devices");
  row("mean buffer", short_text(result->sum_buffer * 1'000'000 / slots, 1) + " devices");
  row("changes a day", short_text(result->changes_micro_per_day(rule), 1));
  row("lends nothing", percent_text(result->lends_nothing * 1'000'000 / slots) + " of the time");
  row("first slot that lends",
      result->first_lend_slot ? std::to_string(*result->first_lend_slot) : "none");
  row("slots without metrics", std::to_string(result->unknown_slots));
  table.print(terminal);
  for (const std::string& note : guard_notes(*study, *result)) terminal.line(note);
  return 0;
}

}  // namespace neap::cli
