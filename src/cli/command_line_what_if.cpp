#include "cli/command_line_what_if.h"

#include <CLI/CLI.hpp>

#include <string>

#include "simulate/run/source.h"

namespace neap::cli {

namespace {

// An empty word, as of a variable that was never set, would be taken for an option not given.

void refuse_empty_words(CLI::App* app) {
  const CLI::Validator given(
      [](const std::string& word) {
        return word.empty() ? "expected a word, not an empty one" : "";
      },
      "");
  for (CLI::Option* option : app->get_options()) {
    if (option->get_items_expected_max() > 0) option->check(given);
  }
}

// What traces do not tell.

void add_what_if_jobs(CLI::App* app, WhatIfOptions& o) {
  app->add_option("--tier", o.tier, "Tier of all jobs");
  app->add_option("--checkpoint", o.checkpoint, "Contract of jobs; may be repeated")
      ->check(CLI::IsMember({"sdk", "signals", "none"}))
      ->allow_extra_args(false);
  app->add_option("--checkpoint-interval", o.checkpoint_interval, "The pool's, when not given");
  app->add_option("--save-time", o.save_time, "Of a checkpoint")->capture_default_str();
  app->add_option("--stall-time", o.stall_time, "Of it, how long training stands still")
      ->capture_default_str();
  app->add_option("--restore-time", o.restore_time, "From a restart to work again")
      ->capture_default_str();
  app->add_flag("--on-demand", o.on_demand, "Jobs save when they are asked");
  app->add_flag("--declare-work", o.declare_work, "The pool knows the durations");
  app->add_option("--service", o.service, "Name for requests that have none")
      ->capture_default_str();
  app->add_option("--replica-gpus", o.replica_gpus, "Devices of a replica")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--replica-rate", o.replica_rate, "Requests a second that a replica serves")
      ->capture_default_str();
  app->add_option("--replicas-min", o.replicas_min, "At least")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app->add_option("--replicas-max", o.replicas_max, "At most; 0: what the devices hold")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
}

}  // namespace

void add_what_if(CLI::App* app, WhatIfOptions& o) {
  app->add_option("--cluster", o.cluster,
                  "Pool file, openb node list, or NODESxDEVICESxMODEL such as 64x8xA100-80G");
  app->add_option("--workload", o.workload, "Trace or journal; may be repeated")
      ->allow_extra_args(false);
  app->add_option("--format", o.format, "Of the workload")
      ->check(CLI::IsMember(whatif::format_names()))
      ->capture_default_str();
  app->add_option("--generate", o.generate, "Draw a workload instead")
      ->check(CLI::IsMember(whatif::generator_names()));
  app->add_option("--jobs", o.jobs, "Jobs to draw")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}))
      ->capture_default_str();
  app->add_option("--load", o.load, "Of the devices, by drawn jobs")->capture_default_str();
  app->add_option("--policy", o.policies, "Pool file; repeated: compared with the first")
      ->allow_extra_args(false);
  app->add_option("--compare", o.compare, "Pool files A,B");
  app->add_option("--set", o.sets, "key=value of the pool file; may be repeated")
      ->allow_extra_args(false);
  app->add_flag("--baseline", o.baseline, "Compare with each policy without --set");
  app->add_option("--seed", o.seed, "Of what is drawn by chance")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX))
      ->capture_default_str();
  app->add_option("--seeds", o.seeds, "FIRST-LAST");
  app->add_option("--jitter", o.jitter, "Draw durations within so much of the recorded ones");
  app->add_option("--sample", o.sample, "Draw this part of the jobs");
  app->add_option("--until", o.until, "End so long after the first arrival");
  app->add_flag("--no-learning", o.no_learning, "Placement does not learn from the demand");
  app->add_flag("--review", o.review, "Review the last seven days of the run, as `neap review`");
  CLI::Option* json = app->add_flag("--json", o.json, "Print the results as JSON");
  app->add_flag("--csv", o.csv, "Print a row a run")->excludes(json);
  app->add_flag("--curves", o.curves, "Curves over time too, in the JSON");
  app->add_option("--curves-csv", o.curves_csv, "Write the curves to this file");
  app->add_option("--picture", o.picture, "Draw the runs into this HTML file");
  add_what_if_jobs(app, o);
  refuse_empty_words(app);
}

}  // namespace neap::cli
