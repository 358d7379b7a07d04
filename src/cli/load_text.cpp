// The report of a load, for people and for programs.
#include <array>
#include <cstdio>
#include <utility>

#include "cli/format.h"
#include "cli/load.h"

namespace neap::cli {
namespace {

using load::LoadTotals;
using load::Outcome;

std::string ms(Micros length) { return fixed(static_cast<double>(length.value) / 1000, 2); }

double seconds_of(Micros length) { return static_cast<double>(length.value) / 1e6; }

double rate_of(std::uint64_t count, Micros length) {
  return length > Micros(0) ? static_cast<double>(count) / seconds_of(length) : 0;
}

Micros offered_length(const load::LoadOptions& options) {
  return options.trace.empty() ? options.curve.length() : options.trace.back().at;
}

// Over the time in which requests were sent, or to the last answer where there is none.
Micros counted_length(const load::LoadOptions& options, const load::LoadSummary& summary) {
  const Micros offered = std::min(offered_length(options), summary.length);
  return offered > Micros(0) ? offered : summary.length;
}

void add_times(Table& table, const std::string& name, const measure::Histogram& times) {
  if (times.empty()) return;
  const measure::Percentiles p = times.percentiles();
  table.add({{name},
             {ms(p.p50)},
             {ms(p.p95)},
             {ms(p.p99)},
             {ms(times.max())},
             {std::to_string(times.count())}});
}

std::string statuses_text(const LoadTotals& totals) {
  std::string text;
  for (const auto& [status, count] : totals.by_status) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + std::to_string(status);
    if (status == 429) text += " (" + std::to_string(totals.retry_after) + " with Retry-After)";
  }
  return text.empty() ? "none" : text;
}

std::string kinds_of_failure_text(const LoadTotals& totals) {
  std::string text;
  for (std::size_t i = 1; i < load::outcome_count; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (totals.count(outcome) == 0) continue;
    text += ", " + std::to_string(totals.count(outcome)) + " " + std::string(name_of(outcome));
  }
  return text;
}

bool has_objective(const load::LoadOptions& options) {
  return options.objective.first_byte > Micros(0) || options.objective.total > Micros(0);
}

std::string times_json(const measure::Histogram& times) {
  if (times.empty()) return "null";
  const measure::Percentiles p = times.percentiles();
  return "{\"count\": " + std::to_string(times.count()) +
         ", \"p50_us\": " + std::to_string(p.p50.value) +
         ", \"p95_us\": " + std::to_string(p.p95.value) +
         ", \"p99_us\": " + std::to_string(p.p99.value) +
         ", \"max_us\": " + std::to_string(times.max().value) +
         ", \"mean_us\": " + std::to_string(times.mean().value) + "}";
}

std::string totals_json(const LoadTotals& totals, Micros length) {
  std::string outcomes;
  for (std::size_t i = 0; i < load::outcome_count; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    outcomes += (i == 0 ? "" : ", ") + json_text(name_of(outcome)) + ": " +
                std::to_string(totals.count(outcome));
  }
  std::string statuses;
  for (const auto& [status, count] : totals.by_status) {
    statuses += (statuses.empty() ? "\"" : ", \"") + std::to_string(status) +
                "\": " + std::to_string(count);
  }
  return "\"scheduled\": " + std::to_string(totals.scheduled) + ", \"outcomes\": {" + outcomes +
         "}, \"statuses\": {" + statuses +
         "}, \"retry_after\": " + std::to_string(totals.retry_after) +
         ", \"sent_again\": " + std::to_string(totals.sent_again) +
         ", \"within_objective\": " + std::to_string(totals.within_objective) +
         ", \"good_per_s\": " + fixed(rate_of(totals.count(Outcome::ok), length), 3) +
         ", \"goodput_per_s\": " + fixed(rate_of(totals.within_objective, length), 3) +
         ", \"tokens\": " + std::to_string(totals.tokens) +
         ", \"tokens_per_s\": " + fixed(rate_of(totals.tokens, length), 3) +
         ", \"first_byte\": " + times_json(totals.first_byte) +
         ", \"total\": " + times_json(totals.total) +
         ", \"inter_token\": " + times_json(totals.inter_token);
}

}  // namespace

void print_load(Terminal& terminal, const load::LoadOptions& options,
                const load::LoadSummary& summary) {
  const Micros length = counted_length(options, summary);
  terminal.line(std::to_string(summary.scheduled) + " requests in " + fixed(seconds_of(length), 1) +
                " s: " + std::to_string(summary.count(Outcome::ok)) + " ok" +
                kinds_of_failure_text(summary));
  terminal.line("status: " + statuses_text(summary));
  terminal.line(fixed(rate_of(summary.count(Outcome::ok), length), 2) + " good requests/s, " +
                fixed(rate_of(summary.tokens, length), 1) + " tokens/s" +
                (has_objective(options)
                     ? ", " + fixed(rate_of(summary.within_objective, length), 2) +
                           " requests/s within the objective"
                     : ""));
  if (options.keep_idle > Micros(0)) {
    terminal.line(std::to_string(summary.connections) + " connections; " +
                  std::to_string(summary.sent_again) +
                  " requests sent again, their connection was stale");
  }
  Table times({"MS", "P50", "P95", "P99", "MOST", "OF"});
  add_times(times, "time to first token", summary.first_byte);
  add_times(times, "between tokens", summary.inter_token);
  add_times(times, "total", summary.total);
  add_times(times, "lateness of the generator", summary.lateness);
  terminal.line("");
  times.print(terminal);
  if (summary.classes.empty()) return;
  Table classes({"CLASS", "REQUESTS", "OK", "429", "FAILED", "IN TIME", "FIRST P50", "P95", "P99"});
  for (std::size_t i = 0; i < summary.classes.size(); ++i) {
    const LoadTotals& one = summary.classes[i];
    const auto shed = one.by_status.find(429);
    const std::uint64_t refused = shed == one.by_status.end() ? 0 : shed->second;
    const measure::Percentiles p = one.first_byte.percentiles();
    classes.add({{options.classes[i].name},
                 {std::to_string(one.scheduled)},
                 {std::to_string(one.count(Outcome::ok))},
                 {std::to_string(refused)},
                 {std::to_string(one.failed() - refused)},
                 {std::to_string(one.within_objective)},
                 {ms(p.p50)},
                 {ms(p.p95)},
                 {ms(p.p99)}});
  }
  terminal.line("");
  classes.print(terminal);
}

std::string load_json(const load::LoadOptions& options, const load::LoadSummary& summary,
                      const std::string& note) {
  const Micros length = counted_length(options, summary);
  std::string classes;
  for (std::size_t i = 0; i < summary.classes.size(); ++i) {
    classes += (i == 0 ? "{\"name\": " : ", {\"name\": ") + json_text(options.classes[i].name) +
               ", " + totals_json(summary.classes[i], length) + "}";
  }
  return "{\"length_us\": " + std::to_string(length.value) + ", " + totals_json(summary, length) +
         ", \"connections\": " + std::to_string(summary.connections) +
         ", \"lateness\": " + times_json(summary.lateness) + ", \"classes\": [" + classes +
         "], \"note\": " + (note.empty() ? "null" : json_text(note)) + "}";
}

}  // namespace neap::cli
