#include "cli/what_if.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

#include "cli/format.h"
#include "config/problem.h"
#include "config/values.h"
#include "core/rules/adoption.h"
#include "ledger/review.h"
#include "simulate/run/picture/picture.h"

namespace neap::cli {

namespace {

constexpr std::uint64_t most_seeds = 1'000;

template <class T>
Result<void> read_if_given(const std::string& option, const std::string& text,
                           config::Parsed<T> (*parse)(std::string_view), T& into) {
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return wrong_option(option, value.error());
  into = *value;
  return {};
}

Result<std::vector<std::uint64_t>> seeds_of(const WhatIfOptions& options) {
  if (options.seeds.empty()) {
    return std::vector<std::uint64_t>{static_cast<std::uint64_t>(options.seed)};
  }
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const char* const end = options.seeds.data() + options.seeds.size();
  const auto [dash, error] = std::from_chars(options.seeds.data(), end, first);
  bool good = error == std::errc() && dash != end && *dash == '-';
  if (good) {
    const auto [rest, second] = std::from_chars(dash + 1, end, last);
    good = second == std::errc() && rest == end && last >= first && last - first < most_seeds &&
           last <= INT64_MAX;
  }
  if (!good)
    return wrong_option("--seeds", "expected FIRST-LAST, such as 1-10, at most 1000 of them");
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  return seeds;
}

Result<ContractSpec> contract_of(const WhatIfOptions& options) {
  ContractSpec contract;
  contract.on_demand = options.on_demand;
  for (const std::string& kind : options.checkpoint) {
    contract.sdk = contract.sdk || kind == "sdk";
    contract.signals = contract.signals || kind == "signals";
  }
  if (options.checkpoint.empty()) contract.sdk = true;
  const struct {
    const char* option;
    const std::string& text;
    Micros& into;
  } times[] = {{"--checkpoint-interval", options.checkpoint_interval, contract.interval},
               {"--save-time", options.save_time, contract.save},
               {"--stall-time", options.stall_time, contract.stall},
               {"--restore-time", options.restore_time, contract.restore}};
  for (const auto& [option, text, into] : times) {
    if (auto done = read_if_given(option, text, &config::parse_duration, into); !done) {
      return tl::unexpected(done.error());
    }
  }
  return contract;
}

// Without --cluster the devices are those that the first pool file names.
Result<whatif::ClusterSpec> cluster_of(const WhatIfOptions& options,
                                       const std::vector<std::string>& files) {
  if (!options.cluster.empty()) return whatif::load_cluster(options.cluster);
  if (files.front().empty()) {
    return wrong_option("--cluster",
                        "is needed: a pool file, an openb node list, or 64x8xA100-80G");
  }
  return whatif::load_cluster(files.front());
}

Result<std::vector<std::string>> policy_files(const WhatIfOptions& options) {
  std::vector<std::string> files = options.policies;
  for (std::size_t begin = 0; begin < options.compare.size() + 1 && !options.compare.empty();) {
    const std::size_t end = std::min(options.compare.find(',', begin), options.compare.size());
    files.push_back(options.compare.substr(begin, end - begin));
    begin = end + 1;
  }
  const bool nameless = std::find(files.begin(), files.end(), std::string()) != files.end();
  if (!options.compare.empty() && (nameless || files.size() < 2)) {
    return wrong_option("--compare",
                        "expected pool files with a comma between, such as now.yaml,new.yaml");
  }
  if (files.empty()) files.emplace_back();
  return files;
}

Result<void> add_policies(const WhatIfOptions& options, const std::vector<std::string>& files,
                          whatif::Study& study) {
  for (const std::string& file : files) {
    for (const bool plain : {true, false}) {
      if (plain && !options.baseline) continue;
      auto policy = whatif::load_policy(file, plain ? std::vector<std::string>() : options.sets,
                                        options.cluster.empty() ? 0 : study.cluster.devices());
      if (!policy) return tl::unexpected(policy.error());
      study.policies.push_back(std::move(*policy));
    }
  }
  return {};
}

Result<void> add_workload(const WhatIfOptions& options, whatif::Study& study) {
  whatif::WorkloadOptions& workload = study.workload;
  workload.files = options.workload;
  workload.format = *whatif::format_named(options.format);
  workload.tier = options.tier;
  if (options.declare_work) workload.work = whatif::WorkloadOptions::Work::declared;
  auto contract = contract_of(options);
  if (!contract) return tl::unexpected(contract.error());
  workload.contract = *contract;
  whatif::ReplicaOptions& replica = workload.replica;
  replica.service = options.service;
  replica.gpus = options.replica_gpus;
  replica.min = options.replicas_min;
  replica.max = options.replicas_max;
  if (replica.max == 0) {
    replica.max = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(study.cluster.devices() / replica.gpus, 1, 10'000));
  }
  if (replica.max < replica.min)
    return wrong_option("--replicas-max", "is less than --replicas-min");
  Micros rate{0};  // as a length of time: requests a second are millionths of one
  if (auto done = read_if_given("--replica-rate", options.replica_rate + "s",
                                &config::parse_duration, rate);
      !done || rate.value <= 0) {
    return wrong_option("--replica-rate", "expected requests a second, such as 10 or 0.5");
  }
  replica.rate_micro = rate.value;
  if (auto done = read_if_given("--jitter", options.jitter, &config::parse_part, workload.jitter);
      !done) {
    return done;
  }
  if (auto done = read_if_given("--sample", options.sample, &config::parse_part, workload.sample);
      !done) {
    return done;
  }
  if (options.generate.empty()) {
    if (!workload.files.empty()) return {};
    return wrong_option("--workload", "is needed: a file of jobs, or --generate philly");
  }
  whatif::Generated generated;
  generated.kind = options.generate;
  generated.jobs = options.jobs;
  generated.devices = study.cluster.devices();
  generated.service = options.service;
  generated.replica_rate_micro = replica.rate_micro;
  // Above 100 % too: an overload is worth a look.
  std::int64_t percent = 0;
  const std::string digits = options.load.substr(0, options.load.find('%'));
  const auto whole = config::parse_whole(digits);
  if (!whole || options.load != digits + "%" || *whole < 1 || *whole > 1'000) {
    return wrong_option("--load", "expected 1% to 1000% of the devices");
  }
  percent = *whole;
  generated.load = Ppm(percent * 10'000);
  workload.generated = generated;
  return {};
}

// One line on the terminal that is written again and again; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine(Terminal& terminal, std::size_t runs) : terminal_(terminal), runs_(runs) {}

  void show(const whatif::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (progress.now < last_) ++run_;
    last_ = progress.now;
    if (now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    std::string line =
        runs_ > 1 ? "run " + std::to_string(run_ + 1) + " of " + std::to_string(runs_) + "  "
                  : std::string();
    if (progress.total && *progress.total > 0) {
      constexpr std::int64_t width = 30;
      const std::int64_t done = std::min(width, progress.ended * width / *progress.total);
      line += "[" + std::string(static_cast<std::size_t>(done), '#') +
              std::string(static_cast<std::size_t>(width - done), '.') + "] " +
              std::to_string(progress.ended * 100 / *progress.total) + " %  ";
    }
    line += "day " + std::to_string(progress.now.us / hours(24).value) + ", " +
            std::to_string(progress.ended) + " jobs ended, " + std::to_string(progress.running) +
            " run, " + std::to_string(progress.waiting) + " wait";
    terminal_.status(line);
  }

 private:
  Terminal& terminal_;
  std::size_t runs_;
  std::size_t run_ = 0;
  Time last_;
  std::chrono::steady_clock::time_point shown_;
};

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return fail(ErrorCode::unavailable, "cannot be written", path);
}

}  // namespace

Result<whatif::Study> study_of(const WhatIfOptions& options) {
  whatif::Study study;
  const auto files = policy_files(options);
  if (!files) return tl::unexpected(files.error());
  auto cluster = cluster_of(options, *files);
  if (!cluster) return tl::unexpected(cluster.error());
  study.cluster = std::move(*cluster);
  if (auto added = add_policies(options, *files, study); !added) {
    return tl::unexpected(added.error());
  }
  if (auto added = add_workload(options, study); !added) return tl::unexpected(added.error());
  auto seeds = seeds_of(options);
  if (!seeds) return tl::unexpected(seeds.error());
  study.seeds = std::move(*seeds);
  if (options.no_learning) study.learning = whatif::RunSpec::Learning::none;
  if (!options.until.empty()) {
    Micros until{0};
    if (auto done = read_if_given("--until", options.until, &config::parse_duration, until);
        !done) {
      return tl::unexpected(done.error());
    }
    study.until = until;
  }
  return study;
}

namespace {

void print_review(Terminal& terminal, const ledger::Weeks& weeks, Time end, const PoolSpec& pool) {
  const ledger::Review found =
      ledger::review(ledger::figures_of(weeks, end - hours(7 * 24), end), pool);
  for (const std::string& line : found.evidence) terminal.line("review: " + line);
  terminal.line("review: " + std::string(ledger::name_of(found.verdict)) + ": " + found.why);
  if (found.preset_next != Preset::none) {
    terminal.line("review: proposed pool.preset: " + std::string(name_of(found.preset_next)));
  } else if (found.guard_next > 0) {
    terminal.line("review: proposed pool.inference_guard_min: " + std::to_string(found.guard_next) +
                  ", pool.elastic_buffer: " + std::to_string(found.buffer_next));
  }
}

}  // namespace

int what_if(const Context& context, const WhatIfOptions& options) {
  Terminal& terminal = context.terminal();
  auto study = study_of(options);
  if (!study) return context.failed(study.error());
  if (study->seeds.size() > 1 && !whatif::depends_on_seed(study->workload)) {
    terminal.complain(
        "neap: nothing here is drawn by chance, so one seed says it all; --jitter, --sample and "
        "--generate are");
    study->seeds.resize(1);
  }
  ProgressLine line(terminal, study->policies.size() * study->seeds.size());
  whatif::Hooks hooks;
  hooks.progress = [&](const whatif::Progress& progress) { line.show(progress); };
  ledger::Weeks weeks;
  Time end;
  PoolSpec pool;
  if (options.review) {
    if (study->policies.size() * study->seeds.size() > 1) {
      return context.failed(
          {ErrorCode::invalid_argument, "reviews one run: one policy and one seed", "--review"});
    }
    hooks.learn = [&](const PoolState& state, const StepResult&) {
      weeks.note(state);
      end = state.now;
      return std::vector<Event>{};
    };
    pool = study->policies.front().pool;
  }
  const auto outcome = whatif::run_study(*study, hooks);
  terminal.status({});
  if (!outcome) return context.failed(outcome.error());
  const std::pair<const std::string&, std::string> files[] = {
      {options.picture, options.picture.empty() ? "" : whatif::picture_of(*study, *outcome)},
      {options.curves_csv, options.curves_csv.empty() ? "" : whatif::curves_csv_of(*outcome)}};
  for (const auto& [path, text] : files) {
    if (path.empty()) continue;
    if (auto written = write_file(path, text); !written) return context.failed(written.error());
  }
  if (options.json) {
    terminal.line(whatif::json_of(
        *study, *outcome, options.curves ? whatif::WithCurves::yes : whatif::WithCurves::no));
  } else if (options.csv) {
    terminal.write(whatif::csv_of(*outcome));
  } else {
    print_study(terminal, *study, *outcome);
  }
  if (options.review) print_review(terminal, weeks, end, pool);
  return 0;
}

}  // namespace neap::cli
