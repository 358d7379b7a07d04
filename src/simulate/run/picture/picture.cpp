#include "simulate/run/picture/picture.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simulate/run/picture/chart.h"
#include "simulate/run/picture/page.h"

namespace neap::whatif {

namespace {

constexpr std::array<const char*, 6> run_colours = {"#2563eb", "#ea580c", "#059669",
                                                    "#9333ea", "#db2777", "#0891b2"};
constexpr std::array<const char*, 6> tier_colours = {"#f59e0b", "#14b8a6", "#6366f1",
                                                     "#93c5fd", "#a3a3a3", "#f472b6"};
// One for each category of the ledger, in its order.
constexpr std::array<const char*, ledger::category_count> category_colours = {
    "#15803d", "#22c55e", "#86efac", "#b91c1c", "#f97316", "#fb923c", "#fdba74", "#a855f7",
    "#e11d48", "#facc15", "#0ea5e9", "#64748b", "#e2e8f0", "#1f2937", "#99f6e4"};

// The runs that are drawn: each policy with the first seed.
std::vector<const Outcome*> drawn(const Study& study, const StudyOutcome& outcome) {
  std::vector<const Outcome*> runs;
  for (std::size_t i = 0; i < outcome.runs.size(); i += study.seeds.size()) {
    runs.push_back(&outcome.runs[i]);
  }
  return runs;
}

std::string name_of(const Study& study, const Outcome& run) {
  return study.seeds.size() > 1 ? run.policy + ", seed " + std::to_string(run.seed) : run.policy;
}

std::string colour_of_run(std::size_t index) { return run_colours[index % run_colours.size()]; }

TimeAxis time_of(const std::vector<const Outcome*>& runs, const Outcome& run) {
  TimeAxis time{run.begin_us, run.end_us};
  for (const Outcome* other : runs) time.end_us = std::max(time.end_us, other->end_us);
  return time;
}

std::string figures_table(const std::vector<const Outcome*>& runs, const Study& study) {
  std::string out =
      "<div class=\"scroll\"><table><tr><th>policy</th><th>jobs</th><th>finished</th>"
      "<th>mean wait</th><th>p50</th><th>p99</th><th>completion</th><th>allocated</th>"
      "<th>effective</th><th>preemptions</th><th>work lost</th></tr>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Outcome& run = *runs[i];
    const JobFigures& f = run.all;
    out += "<tr><td><b style=\"color:" + colour_of_run(i) + "\">" + escaped(name_of(study, run)) +
           "</b></td>";
    for (const std::string& cell :
         {with_commas(f.jobs), with_commas(f.finished), time_text(f.wait.mean_us),
          time_text(f.wait.p50_us), time_text(f.wait.p99_us), time_text(f.completion.mean_us),
          percent_text(run.allocated_ppm), percent_text(run.effective_ppm),
          with_commas(f.preemptions),
          with_commas(f.lost_device_us / 3'600'000'000) + " device hours"}) {
      out += "<td>" + cell + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string use_sections(const std::vector<const Outcome*>& runs, const Study& study) {
  std::string out;
  for (const Outcome* run : runs) {
    std::vector<Line> layers;
    std::vector<std::pair<std::string, std::string>> key;
    for (std::size_t tier = 0; tier < run->curves.tiers.size(); ++tier) {
      const auto& values = run->curves.use[tier];
      if (std::all_of(values.begin(), values.end(), [](auto v) { return v == 0; })) continue;
      const std::string colour = tier_colours[tier % tier_colours.size()];
      layers.push_back({run->curves.tiers[tier], colour, values, run->curves.span_us});
      key.emplace_back(run->curves.tiers[tier], colour);
    }
    const ValueAxis devices{std::max<std::int64_t>(1, run->devices) * 1'000, 1'000, "devices"};
    out += section("Devices in use, by tier: " + name_of(study, *run),
                   key_of(key) + stacked_chart(layers, time_of(runs, *run), devices));
  }
  return out;
}

using Curve = std::vector<std::int64_t> Curves::*;

std::string curve_section(const std::vector<const Outcome*>& runs, const Study& study,
                          const std::string& title, Curve curve, std::string_view label) {
  std::int64_t most = 1'000;
  for (const Outcome* run : runs) {
    for (const std::int64_t value : run->curves.*curve) most = std::max(most, value);
  }
  const ValueAxis values{most + most / 20, 1'000, label};
  std::vector<std::pair<std::string, std::string>> key;
  const TimeAxis time = time_of(runs, *runs.front());
  std::vector<Line> lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    key.emplace_back(name_of(study, *runs[i]), colour_of_run(i));
    lines.push_back({name_of(study, *runs[i]), colour_of_run(i), runs[i]->curves.*curve,
                     runs[i]->curves.span_us});
  }
  return section(title, key_of(key) + line_chart(lines, time, values));
}

std::string waits_section(const std::vector<const Outcome*>& runs, const Study& study) {
  std::vector<Line> lines;
  std::vector<std::pair<std::string, std::string>> key;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    key.emplace_back(name_of(study, *runs[i]), colour_of_run(i));
    lines.push_back({name_of(study, *runs[i]), colour_of_run(i), runs[i]->wait_quantiles_us});
  }
  return section("Waits until the first start", key_of(key) + distribution_chart(lines));
}

std::string time_section(const std::vector<const Outcome*>& runs, const Study& study) {
  std::string body;
  std::vector<std::pair<std::string, std::string>> key;
  for (std::size_t c = 0; c < ledger::category_count; ++c) {
    const bool seen = std::any_of(runs.begin(), runs.end(), [&](const Outcome* run) {
      return run->by_category_ppm[c] >= 500;
    });
    std::string name(ledger::name_of(static_cast<ledger::Category>(c)));
    std::replace(name.begin(), name.end(), '_', ' ');
    if (seen) key.emplace_back(name, category_colours[c]);
  }
  for (const Outcome* run : runs) {
    std::vector<Part> parts;
    for (std::size_t c = 0; c < ledger::category_count; ++c) {
      parts.push_back({std::string(ledger::name_of(static_cast<ledger::Category>(c))),
                       category_colours[c], run->by_category_ppm[c]});
    }
    body += "<p style=\"margin:8px 0 4px\">" + escaped(name_of(study, *run)) + "</p>" + bar(parts);
  }
  return section("Where device time went", key_of(key) + body);
}

std::string comparison_section(const Comparison& comparison) {
  std::string body = "<p>A: " + escaped(comparison.reference) +
                     "<br>B: " + escaped(comparison.other) +
                     "</p><div class=\"scroll\"><table><tr>" +
                     "<th>mean over seeds</th><th>A</th><th>B</th><th>B / A</th>" +
                     "<th>seeds in which B is better, worse, equal</th></tr>\n";
  for (const Compared& c : comparison.figures) {
    if (c.is_nothing()) continue;
    const bool is_time = c.name.ends_with("_us") && !c.name.starts_with("lost");
    const auto value = [&](std::int64_t v) {
      if (is_time) return time_text(v);
      if (c.name.ends_with("_ppm")) return percent_text(v);
      if (c.name.starts_with("lost")) return with_commas(v / 3'600'000'000) + " device hours";
      return with_commas(v);
    };
    std::string name = c.name.substr(0, c.name.find(is_time ? "_us" : "_ppm"));
    if (c.name.starts_with("lost")) name = "work lost";
    std::replace(name.begin(), name.end(), '_', ' ');
    const bool judged = c.better != Compared::Better::neither;
    const bool higher = c.other_mean > c.reference_mean;
    const bool better = higher == (c.better == Compared::Better::higher);
    const bool equal = c.other_mean == c.reference_mean;
    const std::string mark = !judged || equal ? "" : better ? " class=\"good\"" : " class=\"bad\"";
    std::string thousandths = std::to_string(c.ratio_ppm / 1'000 % 1'000);
    thousandths.insert(0, 3 - thousandths.size(), '0');
    const std::string ratio =
        c.ratio_ppm < 0 ? "-" : with_commas(c.ratio_ppm / 1'000'000) + "." + thousandths;
    body += "<tr><td>" + escaped(name) + "</td><td>" + value(c.reference_mean) + "</td><td>" +
            value(c.other_mean) + "</td><td" + mark + ">" + ratio + "</td><td>" +
            (judged ? std::to_string(c.seeds_better) + ", " + std::to_string(c.seeds_worse) + ", " +
                          std::to_string(c.seeds_equal)
                    : std::string("-")) +
            "</td></tr>\n";
  }
  return section("Compared", body + "</table></div>\n");
}

std::string never_section(const std::vector<const Outcome*>& runs, const Study& study) {
  std::string rows;
  for (const Outcome* run : runs) {
    for (const NeverStarted& n : run->never_started) {
      rows += "<tr><td>" + escaped(name_of(study, *run)) + "</td><td>" + with_commas(n.jobs) +
              "</td><td>" + escaped(n.reason) + "</td><td style=\"white-space:normal\">" +
              escaped(n.example + ": " + n.detail) + "</td></tr>\n";
    }
  }
  if (rows.empty()) return {};
  return section("Jobs that never started",
                 "<div class=\"scroll\"><table><tr><th>policy</th><th>jobs</th><th>reason</th>"
                 "<th>such as</th></tr>\n" +
                     rows + "</table></div>\n");
}

}  // namespace

std::string picture_of(const Study& study, const StudyOutcome& outcome) {
  const std::vector<const Outcome*> runs = drawn(study, outcome);
  std::string what;
  for (const std::string& file : study.workload.files) what += (what.empty() ? "" : ", ") + file;
  if (study.workload.generated) {
    what += (what.empty() ? "" : ", ") + study.workload.generated->kind + " (generated)";
  }
  std::string out = page_begin("neap simulate");
  out += "<h1>What if</h1><p>" + with_commas(study.cluster.devices()) + " devices (" +
         escaped(study.cluster.text) + "), workload " + escaped(what);
  if (study.seeds.size() > 1) {
    out += "; " + std::to_string(study.seeds.size()) + " seeds, of which the first is drawn";
  }
  out += "</p>\n";
  out += section("Figures", figures_table(runs, study));
  for (const Comparison& comparison : outcome.comparisons) out += comparison_section(comparison);
  out += use_sections(runs, study);
  out += curve_section(runs, study, "Jobs that wait", &Curves::waiting_jobs_milli, "jobs");
  out += curve_section(runs, study, "Devices that waiting jobs ask for", &Curves::waiting_milli,
                       "devices");
  out += curve_section(runs, study, "Fragmentation: devices free on partly used nodes",
                       &Curves::fragmented, "devices");
  out += waits_section(runs, study) + time_section(runs, study) + never_section(runs, study);
  return out + std::string(page_end);
}

}  // namespace neap::whatif
