#include "cli/format.h"
#include "cli/reports.h"
#include "config/values.h"

namespace neap::cli {

namespace {

std::string count(const Value& row, const char* member) {
  return std::to_string(row.number_at(member));
}

std::string spread_text(const Value& spread) {
  if (spread.number_at("count") == 0) return "none seen";
  return "p50 " + length_text(spread.number_at("p50")) + ", p95 " +
         length_text(spread.number_at("p95")) + ", p99 " + length_text(spread.number_at("p99")) +
         ", at most " + length_text(spread.number_at("max"));
}

// Of none that were tried there is no part.
std::string success_text(const Value& counts) {
  const bool tried = counts.number_at("done") + counts.number_at("failed") > 0;
  return tried ? part_text(counts.number_at("success_ppm")) : "-";
}

std::string share_text(const Value& counts, const char* member) {
  const std::int64_t done = counts.number_at("done");
  if (done == 0) return count(counts, member);
  return count(counts, member) + " (" + part_text(counts.number_at(member) * 1'000'000 / done) +
         ")";
}

void print_counts(Terminal& terminal, const Value& counts) {
  terminal.line("asked to yield         " + count(counts, "asked") + ": " + count(counts, "done") +
                " left, " + count(counts, "withdrawn") + " told to stay, " +
                count(counts, "failed") + " stopped after their grace, " + count(counts, "open") +
                " open");
  terminal.line("success                " + success_text(counts) +
                " of those that left or were stopped");
  terminal.line("left                   " + share_text(counts, "at_boundary") + " at a boundary, " +
                share_text(counts, "on_demand") + " on demand, " + share_text(counts, "at_end") +
                " at their end");
  terminal.line("lost work              " + spread_text(counts.at("lost_us")));
  terminal.line("from asking to leaving " + spread_text(counts.at("release_us")));
  terminal.line("  promised (p95)       " + spread_text(counts.at("promised_us")) + "; " +
                count(counts, "in_time") + " of " + count(counts.at("release_us"), "count") +
                " within it");
}

void print_groups(Terminal& terminal, const char* head, const Value& groups) {
  Table table({head, "ASKED", "LEFT", "STAYED", "STOPPED", "SUCCESS", "LOST P95", "LOST MOST"});
  for (const auto& [name, counts] : groups.members) {
    table.add({{name},
               {count(counts, "asked")},
               {count(counts, "done")},
               {count(counts, "withdrawn")},
               {count(counts, "failed")},
               {success_text(counts)},
               {length_text(counts.at("lost_us").number_at("p95"))},
               {length_text(counts.at("lost_us").number_at("max"))}});
  }
  if (table.empty()) return;
  terminal.line("");
  table.print(terminal);
}

void print_capacity(Terminal& terminal, const Value& report) {
  Table table({"QUEUE", "ENDED", "PREEMPTED", "EFFECTIVE CAPACITY"});
  for (const Value& queue : report.list_at("capacity")) {
    const bool none = queue.text_at("effective") == "none";
    table.add({{queue.text_at("team") + "/" + queue.text_at("tier")},
               {count(queue, "stays")},
               {count(queue, "cut")},
               {none ? "none: always preempted" : part_text(queue.number_at("effective_ppm")),
                none ? Colour::bad : Colour::plain}});
  }
  if (table.empty()) return;
  terminal.line("");
  terminal.line("effective capacity: device time that could be kept for " +
                length_text(report.number_at("protect_us")) + ", of what was asked for");
  table.print(terminal);
}

}  // namespace

int preemptions(const Context& context, const PreemptionOptions& options) {
  const auto since = config::parse_duration(options.since);
  if (!since || since->value <= 0) {
    return context.failed({ErrorCode::invalid_argument,
                           since ? "a length of time above 0" : since.error(), "--since"});
  }
  std::string body;
  const auto report =
      context.get("/v1/preemptions?since_us=" + std::to_string(since->value), &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  const std::int64_t complete = report->number_at("complete_from_us");
  if (complete > report->number_at("from_us")) {
    terminal.line("of older ones not all are kept: complete from " + moment_text(complete));
  }
  print_counts(terminal, report->at("all"));
  const Value& broken = report->at("break_glass");
  if (broken.number_at("asked") > 0) {
    terminal.line("killed (break glass)   " + count(broken, "asked") + ", lost work " +
                  spread_text(broken.at("lost_us")));
  }
  print_groups(terminal, "TEAM", report->at("teams"));
  print_groups(terminal, "TIER", report->at("tiers"));
  print_groups(terminal, "QUEUE", report->at("queues"));
  print_capacity(terminal, *report);
  return 0;
}

}  // namespace neap::cli
