#include <string>
#include <vector>

#include "cli/guard.h"

namespace neap::cli {

namespace {

constexpr std::int32_t choices[] = {10, 20, 50, 100};

struct Choice {
  GuardStudy study;
  simulate::Backtest result;
};

Result<std::vector<Choice>> tested(const GuardOptions& options) {
  auto study = guard_study(options);
  if (!study) return tl::unexpected(study.error());
  std::vector<Choice> all;
  for (const std::int32_t x : choices) {
    study->spec.rule.guard.violations_per_mille = x;
    auto result = simulate::backtest(study->spec, study->demand);
    if (!result) return tl::unexpected(result.error());
    all.push_back({*study, std::move(*result)});
  }
  return all;
}

std::vector<Cell> row_of(const Choice& choice) {
  const simulate::Backtest& r = choice.result;
  const lead_time::GuardSpec& rule = choice.study.spec.rule.guard;
  const std::int64_t slots = r.scored.last - r.scored.first + 1;
  const std::int64_t x_ppm = std::int64_t{rule.violations_per_mille} * 1'000;
  const bool above =
      r.violated_hours > simulate::violations_by_chance(r.scored_hours, rule.violations_per_mille);
  return {{percent_text(x_ppm)},
          {std::to_string(r.violated_hours) + " of " + std::to_string(r.scored_hours)},
          {percent_text(r.violated_ppm()), above ? Colour::warning : Colour::plain},
          {short_text(r.idle_ppm(), 3)},
          {short_text(r.sum_c * 1'000'000 / slots, 1)},
          {short_text(r.sum_buffer * 1'000'000 / slots, 1)},
          {std::to_string(r.violated_with_buffer)},
          {short_text(r.changes_micro_per_day(rule), 1)},
          {percent_text(r.lends_nothing * 1'000'000 / slots)}};
}

}  // namespace

int guard_fit(const Context& context, const GuardOptions& options) {
  const auto all = tested(options);
  if (!all) return context.failed(as_typed(all.error()));
  Terminal& terminal = context.terminal();
  if (options.json) {
    std::string text = "{\"choices\":[";
    for (const Choice& choice : *all) {
      text += (text.ends_with('[') ? "{" : ",{") + json_of(choice.study, choice.result) + "}";
    }
    terminal.line(text + "]}");
    return 0;
  }
  Table table({"X", "VIOLATED HOURS", "RATE", "IDLE/DEMAND", "MEAN GUARD", "BUFFER",
               "VIOLATED WITH IT", "CHANGES/DAY", "LENDS NOTHING"});
  for (const Choice& choice : *all) table.add(row_of(choice));
  table.print(terminal);
  terminal.line("");
  const Choice& first = all->front();
  terminal.line("Buffer at " +
                percent_text(std::int64_t{first.study.spec.rule.paying_per_mille} * 1'000) +
                ", from what an idle and a missing device cost.");
  for (const std::string& note : guard_notes(first.study, first.result)) terminal.line(note);
  for (std::size_t i = 1; i < all->size(); ++i) {
    const Choice& choice = (*all)[i];
    terminal.line(simulate::confidence_note(choice.result,
                                            choice.study.spec.rule.guard.violations_per_mille) +
                  ".");
  }
  return 0;
}

}  // namespace neap::cli
