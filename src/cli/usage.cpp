#include <cstdint>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::int64_t parts_of(std::int64_t time, std::int64_t all) {
  return static_cast<std::int64_t>(static_cast<long double>(time) / static_cast<long double>(all) *
                                   1'000'000);
}

void print_switches(Terminal& terminal, const Value& report) {
  Table table({"SWITCHES OF", "A DAY", "BUDGET", "ONE TAKES", "GPU TIME", "PART"});
  for (const Value& row : report.list_at("switches")) {
    const std::int64_t allowed = row.number_at("allowed_of_day", -1);
    table.add({{row.text_at("service")},
               {std::to_string(row.number_at("given_of_day"))},
               {allowed >= 0 ? std::to_string(allowed) : "none"},
               {tenths_text(row.number_at("cost_us"))},
               {length_text(device_time(row.text_at("device_time")))},
               {fine_part_text(row.number_at("share_ppm"))}});
  }
  if (table.empty()) return;
  terminal.line("");
  table.print(terminal);
}

}  // namespace

int usage(const Context& context, const Listing& options) {
  std::string body;
  const auto report = context.get("/v1/usage", &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  print_pool(terminal, report->at("pool"));
  terminal.line("effective utilisation  " +
                part_text(report->number_at("effective_utilisation_ppm")));
  const std::int64_t unverified = report->number_at("unverified_ppm");
  if (unverified > 0) {
    terminal.line("  not verified         " + part_text(unverified) +
                  " (work that reports no steps)");
  }
  terminal.line("mean wait per task     " + length_text(report->number_at("mean_wait_us")) +
                " over " + std::to_string(report->number_at("tasks")) +
                (report->number_at("tasks") == 1 ? " task" : " tasks"));
  terminal.line("preemptions            " + std::to_string(report->number_at("preemptions")));
  terminal.line("lost work              " + length_text(report->number_at("lost_work_us")));
  terminal.line("");
  const std::int64_t all = device_time(report->text_at("provisioned"));
  Table table({"DEVICE TIME", "GPU TIME", "PART"});
  for (const auto& [name, amount] : report->at("categories").members) {
    const std::int64_t time = device_time(amount.text);
    table.add({{name}, {length_text(time)}, {all > 0 ? part_text(parts_of(time, all)) : ""}});
  }
  table.add({{"in all"}, {length_text(all)}, {}});
  table.print(terminal);
  print_switches(terminal, *report);
  return 0;
}

}  // namespace neap::cli
