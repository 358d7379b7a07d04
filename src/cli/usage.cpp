#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

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
                " over " + std::to_string(report->number_at("tasks")) + " tasks");
  terminal.line("preemptions            " + std::to_string(report->number_at("preemptions")));
  terminal.line("lost work              " + length_text(report->number_at("lost_work_us")));
  terminal.line("");
  Table table({"DEVICE TIME", "MILLI-GPU x US"});
  for (const auto& [name, amount] : report->at("categories").members) {
    table.add({{name}, {amount.text}});
  }
  table.add({{"in all"}, {report->text_at("provisioned")}});
  table.print(terminal);
  return 0;
}

}  // namespace neap::cli
