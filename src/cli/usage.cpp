#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

// µs of one whole device, from a decimal string of milli-GPU·µs that may pass 64 bits.
std::int64_t device_time(std::string_view amount) {
  std::int64_t time = 0;
  if (amount.size() <= 3) return 0;
  amount.remove_suffix(3);
  const auto [end, error] = std::from_chars(amount.data(), amount.data() + amount.size(), time);
  return error == std::errc() ? time : INT64_MAX;
}

std::int64_t parts_of(std::int64_t time, std::int64_t all) {
  return static_cast<std::int64_t>(static_cast<long double>(time) / static_cast<long double>(all) *
                                   1'000'000);
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
  return 0;
}

}  // namespace neap::cli
