// The results of a what-if as tables for people.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/format.h"
#include "cli/what_if.h"

namespace neap::cli {

namespace {

constexpr std::size_t most_groups = 12;
constexpr std::int64_t us_per_hour = 3'600'000'000;

// 1234567 as "1,234,567".
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3 + (value < 0 ? 1U : 0U);) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string device_hours(std::int64_t device_us) { return grouped(device_us / us_per_hour) + "h"; }

std::vector<Cell> job_cells(const whatif::JobFigures& f) {
  return {{grouped(f.jobs)},
          {grouped(f.finished)},
          {length_text(f.wait.mean_us)},
          {length_text(f.wait.p50_us)},
          {length_text(f.wait.p99_us)},
          {length_text(f.completion.mean_us)},
          {grouped(f.preemptions)},
          {device_hours(f.lost_device_us)},
          {device_hours(f.held_device_us)}};
}

std::vector<std::string> job_heads(std::vector<std::string> front) {
  for (const char* head :
       {"JOBS", "FINISHED", "MEAN WAIT", "P50", "P99", "COMPLETION", "PREEMPTED", "LOST", "HELD"}) {
    front.emplace_back(head);
  }
  return front;
}

void print_runs(Terminal& terminal, const whatif::StudyOutcome& outcome) {
  Table jobs(job_heads({"POLICY", "SEED"}));
  Table use({"POLICY", "SEED", "ALLOCATED", "WHILE ARRIVING", "EFFECTIVE", "FRAGMENTED",
             "DEADLINES", "FROM", "TO"});
  for (const whatif::Outcome& run : outcome.runs) {
    std::vector<Cell> row = {{run.policy}, {std::to_string(run.seed)}};
    for (Cell& cell : job_cells(run.all)) row.push_back(std::move(cell));
    jobs.add(std::move(row));
    const std::string deadlines =
        run.all.with_deadline == 0
            ? "-"
            : grouped(run.all.deadlines_met) + " of " + grouped(run.all.with_deadline);
    use.add({{run.policy},
             {std::to_string(run.seed)},
             {part_text(run.allocated_ppm)},
             {part_text(run.allocated_while_arriving_ppm)},
             {part_text(run.effective_ppm)},
             {part_text(run.fragmented_ppm)},
             {deadlines},
             {length_text(run.begin_us)},
             {length_text(run.end_us) + (run.cut_off ? " (cut off)" : "")}});
  }
  jobs.print(terminal);
  terminal.line("");
  use.print(terminal);
}

void print_job_groups(Terminal& terminal, const char* head,
                      const std::map<std::string, whatif::JobFigures>& groups) {
  if (groups.size() < 2) return;
  std::vector<const std::pair<const std::string, whatif::JobFigures>*> sorted;
  for (const auto& group : groups) sorted.push_back(&group);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->second.held_device_us > b->second.held_device_us;
  });
  Table table(job_heads({head}));
  for (std::size_t i = 0; i < std::min(sorted.size(), most_groups); ++i) {
    std::vector<Cell> row = {{sorted[i]->first}};
    for (Cell& cell : job_cells(sorted[i]->second)) row.push_back(std::move(cell));
    table.add(std::move(row));
  }
  terminal.line("");
  table.print(terminal);
  if (sorted.size() > most_groups) {
    terminal.line("and " + std::to_string(sorted.size() - most_groups) + " more (--json has all)");
  }
}

void print_one(Terminal& terminal, const whatif::Outcome& run) {
  print_job_groups(terminal, "TIER", run.tiers);
  print_job_groups(terminal, "TEAM", run.teams);
  if (!run.services.empty()) {
    Table table({"SERVICE", "MEAN REPLICAS", "MOST", "LOAD SERVED", "TOO FEW FOR"});
    for (const whatif::ServiceFigures& s : run.services) {
      char mean[32];
      std::snprintf(mean, sizeof mean, "%lld.%lld",
                    static_cast<long long>(s.mean_replicas_milli / 1'000),
                    static_cast<long long>(s.mean_replicas_milli % 1'000 / 100));
      table.add({{s.name},
                 {mean},
                 {std::to_string(s.most_replicas)},
                 {part_text(s.served_ppm)},
                 {length_text(s.short_us)}});
    }
    terminal.line("");
    table.print(terminal);
  }
}

void print_never_started(Terminal& terminal, const whatif::Outcome& run) {
  if (run.never_started.empty()) return;
  Table table({"NEVER STARTED", "JOBS", "SUCH AS", "WHY"});
  for (const whatif::NeverStarted& n : run.never_started) {
    table.add({{n.reason, Colour::warning}, {grouped(n.jobs)}, {n.example}, {n.detail}});
  }
  terminal.line("");
  terminal.line(run.policy + ", seed " + std::to_string(run.seed) + ":");
  table.print(terminal);
}

std::string wait_ratio_text(std::int64_t ppm) {
  if (ppm < 0) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ppm / 1'000'000),
                static_cast<long long>(ppm % 1'000'000 / 1'000));
  return text;
}

std::string value_text(const std::string& name, std::int64_t value) {
  if (name.ends_with("_ppm")) return part_text(value);
  if (name == "lost_device_us") return device_hours(value);
  return name.ends_with("_us") ? length_text(value) : grouped(value);
}

void print_comparison(Terminal& terminal, const whatif::Comparison& comparison) {
  using Better = whatif::Compared::Better;
  terminal.line("");
  terminal.line("A: " + comparison.reference);
  terminal.line("B: " + comparison.other);
  Table table({"MEAN OVER SEEDS", "A", "B", "B/A", "B BETTER", "WORSE", "EQUAL"});
  for (const whatif::Compared& c : comparison.figures) {
    if (c.is_nothing()) continue;
    const bool neither = c.better == Better::neither || c.reference_mean == c.other_mean;
    const bool higher = c.other_mean > c.reference_mean;
    const Colour colour = neither                                  ? Colour::plain
                          : higher == (c.better == Better::higher) ? Colour::good
                                                                   : Colour::bad;
    const std::string name =
        c.name.substr(0, c.name.ends_with("_us")
                             ? c.name.size() - 3
                             : (c.name.ends_with("_ppm") ? c.name.size() - 4 : c.name.size()));
    const bool judged = c.better != Better::neither;
    table.add({{name},
               {value_text(c.name, c.reference_mean)},
               {value_text(c.name, c.other_mean)},
               {wait_ratio_text(c.ratio_ppm), colour},
               {judged ? std::to_string(c.seeds_better) : "-"},
               {judged ? std::to_string(c.seeds_worse) : "-"},
               {std::to_string(c.seeds_equal)}});
  }
  table.print(terminal);
}

}  // namespace

void print_study(Terminal& terminal, const whatif::Study& study,
                 const whatif::StudyOutcome& outcome) {
  const whatif::Outcome& first = outcome.runs.front();
  terminal.line(grouped(first.devices) + " devices on " + grouped(first.nodes) + " nodes (" +
                study.cluster.text + "), " + grouped(first.all.jobs) + " jobs" +
                (first.passed_over > 0 ? ", " + grouped(first.passed_over) + " rows passed over"
                                       : std::string()));
  terminal.line("");
  print_runs(terminal, outcome);
  if (outcome.runs.size() == 1) print_one(terminal, first);
  for (const whatif::Outcome& run : outcome.runs) print_never_started(terminal, run);
  for (const whatif::Comparison& comparison : outcome.comparisons) {
    print_comparison(terminal, comparison);
  }
}

}  // namespace neap::cli
