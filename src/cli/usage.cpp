#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/assess.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::int64_t parts_of(std::int64_t time, std::int64_t all) {
  return static_cast<std::int64_t>(static_cast<long double>(time) / static_cast<long double>(all) *
                                   1'000'000);
}

void print_switch_budgets(Terminal& terminal, const Value& report) {
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

// What neap compare reads of the answer to /v1/services/NAME/latency: of all requests of the
// service, in the longest window. Empty where none ended in it.
std::string latency_row(const std::string& name, const Value& report) {
  for (const Value& series : report.list_at("series")) {
    const auto& windows = series.list_at("windows");
    if (series.text_at("dimension") != "service" || windows.empty()) continue;
    const Value& total = windows.back().at("total");
    const std::int64_t p95 = total.number_at("p95_us", -1);
    const std::int64_t p99 = total.number_at("p99_us", -1);
    if (p95 < 0 || p99 < 0) continue;
    return "{\"name\":" + json_text(name) + ",\"p95_us\":" + std::to_string(p95) +
           ",\"p99_us\":" + std::to_string(p99) +
           ",\"window_us\":" + std::to_string(windows.back().number_at("length_us")) + "}";
  }
  return {};
}

}  // namespace

std::string with_latencies(std::string usage, const std::vector<NamedReport>& reports) {
  std::string rows;
  for (const NamedReport& one : reports) {
    const std::string row = latency_row(one.name, one.latency);
    if (!row.empty()) rows += (rows.empty() ? "" : ",") + row;
  }
  const std::size_t end = usage.rfind('}');
  if (end == std::string::npos) return usage;
  return usage.insert(end, ",\"services\":[" + rows + "]");
}

namespace {

// Services that this one may not see, or whose latencies are not known, are left out.
std::vector<NamedReport> latencies(const Context& context) {
  std::vector<NamedReport> out;
  const auto listing = context.get("/v1/services");
  if (!listing) return out;
  for (const Value& service : listing->list_at("services")) {
    const std::string& name = service.text_at("name");
    auto latency = context.get("/v1/services/" + part(name) + "/latency");
    if (latency) out.push_back({name, std::move(*latency)});
  }
  return out;
}

}  // namespace

int usage(const Context& context, const Listing& options) {
  std::string body;
  const auto report = context.get("/v1/usage", &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(with_latencies(std::move(body), latencies(context)));
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
  print_switch_budgets(terminal, *report);
  return 0;
}

}  // namespace neap::cli
