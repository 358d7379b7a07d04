#include "simulate/run/study.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace neap::whatif {

namespace {

struct Figure {
  std::string_view name;
  Compared::Better better;
  std::int64_t (*of)(const Outcome&);
};

using Better = Compared::Better;
// Of the service that is served worst.
std::int64_t served_of(const Outcome& outcome) {
  std::int64_t least = all_ppm.value;
  for (const ServiceFigures& service : outcome.services) {
    least = std::min(least, service.served_ppm);
  }
  return least;
}

constexpr std::array<Figure, 14> compared_figures = {{
    {"mean_wait_us", Better::lower, [](const Outcome& o) { return o.all.wait.mean_us; }},
    {"p50_wait_us", Better::lower, [](const Outcome& o) { return o.all.wait.p50_us; }},
    {"p99_wait_us", Better::lower, [](const Outcome& o) { return o.all.wait.p99_us; }},
    {"mean_waiting_us", Better::lower, [](const Outcome& o) { return o.all.mean_waiting_us; }},
    {"mean_completion_us", Better::lower,
     [](const Outcome& o) { return o.all.completion.mean_us; }},
    {"finished", Better::higher, [](const Outcome& o) { return o.all.finished; }},
    {"allocated_ppm", Better::neither, [](const Outcome& o) { return o.allocated_ppm; }},
    {"effective_ppm", Better::higher, [](const Outcome& o) { return o.effective_ppm; }},
    {"fragmented_ppm", Better::lower, [](const Outcome& o) { return o.fragmented_ppm; }},
    {"served_ppm", Better::higher, served_of},
    {"preemptions", Better::lower, [](const Outcome& o) { return o.all.preemptions; }},
    {"lost_device_us", Better::lower, [](const Outcome& o) { return o.all.lost_device_us; }},
    {"deadlines_met", Better::higher, [](const Outcome& o) { return o.all.deadlines_met; }},
    {"end_us", Better::lower, [](const Outcome& o) { return o.end_us; }},
}};

Compared compare(const Figure& figure, std::span<const Outcome> reference,
                 std::span<const Outcome> other) {
  Compared compared;
  compared.name = figure.name;
  compared.better = figure.better;
  Wide reference_sum = 0;
  Wide other_sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const std::int64_t a = figure.of(reference[i]);
    const std::int64_t b = figure.of(other[i]);
    reference_sum += a;
    other_sum += b;
    const bool better = figure.better == Better::higher ? b > a : b < a;
    ++(a == b ? compared.seeds_equal : better ? compared.seeds_better : compared.seeds_worse);
  }
  const auto count = static_cast<std::int64_t>(reference.size());
  compared.reference_mean = static_cast<std::int64_t>(reference_sum / count);
  compared.other_mean = static_cast<std::int64_t>(other_sum / count);
  compared.ratio_ppm = reference_sum == 0
                           ? -1
                           : static_cast<std::int64_t>(other_sum * all_ppm.value / reference_sum);
  return compared;
}

}  // namespace

Result<StudyOutcome> run_study(const Study& study, const Hooks& hooks) {
  StudyOutcome out;
  for (const PolicySpec& policy : study.policies) {
    for (const std::uint64_t seed : study.seeds) {
      RunSpec spec{study.cluster, policy, study.workload, study.until, study.learning};
      spec.workload.seed = seed;
      auto outcome = run_once(spec, hooks);
      if (!outcome) return tl::unexpected(outcome.error());
      out.runs.push_back(std::move(*outcome));
    }
  }
  const std::size_t seeds = study.seeds.size();
  const std::span<const Outcome> runs(out.runs);
  for (std::size_t policy = 1; policy < study.policies.size(); ++policy) {
    Comparison comparison{study.policies.front().name, study.policies[policy].name, {}};
    for (const Figure& figure : compared_figures) {
      comparison.figures.push_back(
          compare(figure, runs.subspan(0, seeds), runs.subspan(policy * seeds, seeds)));
    }
    out.comparisons.push_back(std::move(comparison));
  }
  return out;
}

}  // namespace neap::whatif
