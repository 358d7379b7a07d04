#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "cli/guard.h"
#include "simulate/run/picture/guard_picture.h"

namespace neap::cli {

namespace {

constexpr std::int64_t columns_wide = 72;
constexpr std::int64_t rows_high = 16;

// What stands in a column between `low` (not part of it) and `high` devices.
char mark_of(const whatif::GuardColumn& column, std::int64_t low, std::int64_t high) {
  const auto within = [&](std::int64_t value) { return value > low && value <= high; };
  if (column.violated && column.demand > low && high > column.guard) return '!';
  if (column.known && column.demand > low) return '#';
  if (within(column.guard)) return '-';
  if (column.with_buffer > low && column.guard <= low) return '+';
  return ' ';
}

void print_picture(Terminal& terminal, const GuardStudy& study, const simulate::Backtest& result) {
  const auto columns = whatif::guard_columns(result, study.demand, columns_wide);
  std::int64_t highest = rows_high;
  for (const whatif::GuardColumn& column : columns) {
    highest = std::max({highest, column.demand, column.with_buffer});
  }
  const std::size_t digits = std::to_string(highest).size();
  for (std::int64_t row = rows_high; row > 0; --row) {
    const std::int64_t high = highest * row / rows_high;
    const std::int64_t low = highest * (row - 1) / rows_high;
    std::string label = std::to_string(high);
    label.insert(0, digits - label.size(), ' ');
    std::string line = label + " |";
    for (const whatif::GuardColumn& column : columns) line += mark_of(column, low, high);
    terminal.line(line);
  }
  terminal.line(std::string(digits + 1, ' ') + "+" + std::string(columns.size(), '-'));
  terminal.line("slots " + std::to_string(result.scored.first) + " to " +
                std::to_string(result.scored.last) +
                "; # demand, - guard, + buffer, ! demand above the guard");
}

}  // namespace

int guard_show(const Context& context, const GuardOptions& options) {
  const auto study = guard_study(options);
  if (!study) return context.failed(as_typed(study.error()));
  const auto result = simulate::backtest(study->spec, study->demand);
  if (!result) return context.failed(as_typed(result.error()));
  const auto notes = guard_notes(*study, *result);
  if (!options.picture.empty()) {
    std::ofstream file(options.picture, std::ios::binary | std::ios::trunc);
    file << whatif::guard_picture(study->spec.rule.guard, *result, study->demand, notes);
    file.close();
    if (!file)
      return context.failed({ErrorCode::unavailable, "cannot be written", options.picture});
  }
  Terminal& terminal = context.terminal();
  print_picture(terminal, *study, *result);
  for (const std::string& note : notes) terminal.line(note);
  return 0;
}

}  // namespace neap::cli
