// Several what-if runs that belong together: policies against each other, over seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "simulate/run/cluster.h"
#include "simulate/run/outcome.h"
#include "simulate/run/policy.h"
#include "simulate/run/run.h"
#include "simulate/run/workload.h"

namespace neap::whatif {

struct Study {
  ClusterSpec cluster;
  std::vector<PolicySpec> policies;  // the others are compared with the first
  WorkloadOptions workload;          // its seed is replaced by each of `seeds`
  std::vector<std::uint64_t> seeds;
  std::optional<Micros> until;
  RunSpec::Learning learning = RunSpec::Learning::as_daemon;
};

// One figure of two policies over all seeds; the same seed is the same workload to both.
struct Compared {
  std::string name;
  enum class Better : std::uint8_t { lower, higher, neither } better = Better::lower;
  std::int64_t reference_mean = 0;
  std::int64_t other_mean = 0;
  std::int64_t ratio_ppm = 0;  // other / reference; -1 where the reference is 0
  std::int64_t seeds_better = 0, seeds_worse = 0, seeds_equal = 0;  // of the other

  // Nothing of it in any run: not worth a line to people.
  [[nodiscard]] bool is_nothing() const {
    return reference_mean == 0 && other_mean == 0 && seeds_better + seeds_worse == 0;
  }
};
struct Comparison {
  std::string reference, other;
  std::vector<Compared> figures;
};

struct StudyOutcome {
  std::vector<Outcome> runs;  // policy by policy, and of each seed by seed
  std::vector<Comparison> comparisons;
};

[[nodiscard]] Result<StudyOutcome> run_study(const Study& study, const Hooks& hooks);

// docs/operators/what-if.md describes them. Equal inputs give equal bytes.
enum class WithCurves : std::uint8_t { no, yes };
[[nodiscard]] std::string json_of(const Study& study, const StudyOutcome& outcome,
                                  WithCurves curves);
[[nodiscard]] std::string csv_of(const StudyOutcome& outcome);
[[nodiscard]] std::string curves_csv_of(const StudyOutcome& outcome);

}  // namespace neap::whatif
