// Lending devices between training and a service: neap's engine, two clusters, and the policies
// others have, on the same jobs and traffic (docs/time-sharing-evidence.md). One line of JSON a
// run, then the comparison with the first policy.
//
//   loaning_bench --devices 512 --fewer 399 --seeds 11-30 --policies A,B,C2,D,neap,E*,O
//
// Traces are those of NEAP_TRACES. `--policies ablations` are E* with a rule left out each; a
// policy "neap KEY=VALUE..." is neap with keys of its pool file changed. `--requests yes` replays
// the service's requests one by one on the replicas that each policy kept ready.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loaning/report.h"
#include "simulate/loaning/policy.h"
#include "simulate/loaning/requests.h"
#include "simulate/loaning/simulation.h"
#include "simulate/loaning/workload.h"
#include "simulate/run/loaning/engine_run.h"

namespace {

using namespace neap;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string traces;
  std::string pool = "bench/loaning/neap.yaml";
  std::vector<std::string> sets;
  std::int32_t devices = 512;
  std::vector<std::int32_t> fewer;
  std::uint64_t first_seed = 1, last_seed = 2;
  std::vector<std::string> policies = {"A", "B", "C2", "D", "neap", "E*", "O"};
  whatif::EngineRun::Saves saves = whatif::EngineRun::Saves::on_demand;
  loaning::WorkloadSpec workload;
  bool requests = false;  // each is replayed as well
};

[[noreturn]] void refuse(std::string_view what, std::string_view expected) {
  std::fprintf(stderr, "loaning_bench: %.*s: expected %.*s\n", static_cast<int>(what.size()),
               what.data(), static_cast<int>(expected.size()), expected.data());
  std::exit(2);
}

template <class Number>
Number number(std::string_view key, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(key, "a number");
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

void take(std::string_view key, std::string_view value, Options& into) {
  if (key == "--traces") {
    into.traces = value;
  } else if (key == "--pool") {
    into.pool = value;
  } else if (key == "--set") {
    into.sets.emplace_back(value);
  } else if (key == "--devices") {
    into.devices = number<std::int32_t>(key, value);
    if (into.devices < 64 || into.devices % 8 != 0 || into.devices > 100'000) {
      refuse(key, "whole nodes of 8, at least 64 devices");
    }
  } else if (key == "--fewer") {
    for (const std::string& part : split(value)) {
      into.fewer.push_back(number<std::int32_t>(key, part));
      if (into.fewer.back() < 64) refuse(key, "at least 64 devices");
    }
  } else if (key == "--seeds") {
    const std::size_t dash = value.find('-');
    into.first_seed = number<std::uint64_t>(key, value.substr(0, dash));
    into.last_seed = dash == std::string_view::npos
                         ? into.first_seed
                         : number<std::uint64_t>(key, value.substr(dash + 1));
    if (into.last_seed < into.first_seed) refuse(key, "FIRST-LAST");
  } else if (key == "--policies") {
    into.policies = split(value);
  } else if (key == "--load") {
    into.workload.load = number<double>(key, value);
  } else if (key == "--saves") {
    if (value != "boundaries" && value != "on-demand") refuse(key, "boundaries or on-demand");
    into.saves = value == "boundaries" ? whatif::EngineRun::Saves::at_boundaries
                                       : whatif::EngineRun::Saves::on_demand;
  } else if (key == "--requests") {
    if (value != "yes" && value != "no") refuse(key, "yes or no");
    into.requests = value == "yes";
  } else if (key == "--largest-gang") {
    into.workload.largest_gang = number<std::int32_t>(key, value);
  } else if (key == "--inference") {
    into.workload.inference_part = number<double>(key, value);
  } else if (key == "--traffic") {
    if (value == "recorded") {
      into.workload.traffic = loaning::TrafficShape::recorded;
    } else if (value == "broad") {
      into.workload.traffic = loaning::TrafficShape::broad;
    } else if (value == "flat") {
      into.workload.traffic = loaning::TrafficShape::flat;
    } else {
      refuse(key, "recorded, broad or flat");
    }
  } else {
    refuse(key, "an option that there is");
  }
}

Options parse(int argc, char** argv) {
  Options options;
  if (const char* folder = std::getenv("NEAP_TRACES")) options.traces = folder;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) refuse(argv[i], "a value");
    take(argv[i], argv[i + 1], options);
  }
  if (options.policies == std::vector<std::string>{"ablations"}) {
    options.policies = {"A", "E*"};
    for (const auto& policy : loaning::ablations()) options.policies.push_back(policy.name);
    options.policies.emplace_back("O");
  }
  options.workload.nodes = options.devices / loaning::devices_per_node;
  return options;
}

std::optional<loaning::Policy> reference_named(const std::string& name) {
  for (const auto& policy : loaning::ablations()) {
    if (policy.name == name) return policy;
  }
  return loaning::policy_named(name);
}

// The engine as the training cluster of two, without a service: to be compared with A.
constexpr std::string_view alone_name = "neap-A";

struct Case {
  std::string policy;
  std::int32_t devices = 0;
};

std::vector<Case> cases_of(const Options& options) {
  std::vector<Case> cases;
  for (const std::string& name : options.policies) {
    cases.push_back({name, options.devices});
    if (name.starts_with("A") || name.starts_with(alone_name)) continue;
    for (const std::int32_t devices : options.fewer) cases.push_back({name, devices});
  }
  return cases;
}

bool is_neap(std::string_view policy) { return policy.starts_with("neap"); }

whatif::PolicySpec pool_of(const Options& options, const std::string& policy) {
  std::vector<std::string> sets = options.sets;
  for (std::size_t space = policy.find(' '); space != std::string::npos;) {
    const std::size_t end = policy.find(' ', space + 1);
    sets.push_back(policy.substr(space + 1, end == std::string::npos ? end : end - space - 1));
    space = end;
  }
  auto pool = whatif::load_policy(options.pool, sets);
  if (!pool) refuse(policy, pool.error().message);
  return std::move(*pool);
}

loaning::Outcome run_case(const loaning::Workload& workload, const Case& which,
                          const Options& options) {
  if (is_neap(which.policy)) {
    whatif::EngineRun run{pool_of(options, which.policy), which.devices, {}, options.saves};
    if (which.policy.starts_with(alone_name)) {
      run.devices -= workload.peak();
      run.service = whatif::EngineRun::Service::none;
    }
    const auto outcome = whatif::run_loaning(workload, run);
    if (outcome) return *outcome;
    std::fprintf(stderr, "loaning_bench: neap: %s\n", outcome.error().message.c_str());
    std::exit(1);
  }
  const auto policy = reference_named(which.policy);
  if (!policy) refuse(which.policy, "A, B, C2, D, neap, E* or O");
  return simulate(workload, *policy, which.devices);
}

std::vector<trace::Request> requests_of(const Options& options) {
  if (!options.requests) return {};
  auto requests = loaning::read_requests(options.traces);
  if (requests) return std::move(*requests);
  std::fprintf(stderr, "loaning_bench: %s\n", requests.error().message.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  if (options.traces.empty()) {
    std::printf("skipped: NEAP_TRACES not set\n");
    return 0;
  }
  const auto recorded = loaning::read_recorded(options.traces);
  if (!recorded) {
    std::fprintf(stderr, "loaning_bench: %s\n", recorded.error().message.c_str());
    return 1;
  }
  std::printf("#");
  for (int i = 1; i < argc; ++i) std::printf(" %s", argv[i]);
  std::printf("\n");
  const auto requests = requests_of(options);
  std::vector<bench::Row> rows;
  for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    options.workload.seed = seed;
    const auto workload = make_workload(*recorded, options.workload);
    for (const Case& which : cases_of(options)) {
      const auto begin = Clock::now();
      bench::Row row{which.policy, which.devices, seed, run_case(workload, which, options), 0, {}};
      row.took_s = std::chrono::duration<double>(Clock::now() - begin).count();
      if (options.requests) {
        loaning::ReplayOptions replay;
        replay.seed = seed;
        row.requests = replay_requests(workload, row.outcome.ready, requests, replay);
      }
      bench::print(row);
      rows.push_back(std::move(row));
    }
  }
  bench::compare(rows);
  bench::print_requests(rows);
  return 0;
}
