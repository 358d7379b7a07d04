// The verbs, one file each. Each prints its result and returns the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"

namespace neap::cli {

struct Listing {
  bool json = false;
};

struct InitOptions {
  std::string file = "pool.yaml";
  std::int32_t gpus = 0;  // simulated devices; 0: what the machine has, else 4
  std::string preset;     // of the ratio; empty: guard and buffer are written as numbers
};
int init(const Context& context, const InitOptions& options);

int doctor(const Context& context, const Listing& options);

struct SubmitOptions {
  std::vector<std::string> files;  // "-" is standard input
  bool replace = false;            // a live service by a new version
  bool json = false;
};
int submit(const Context& context, const SubmitOptions& options);

struct RunOptions {
  std::string name;
  std::string tier;
  std::string team;
  std::string kind;
  std::int32_t gpus = 1;
  std::string memory;  // with compute or alone: a part of one device
  std::string compute;
  std::vector<std::string> checkpoint;  // contract: sdk, signals
  std::vector<std::string> env;         // NAME=value
  std::vector<std::string> command;
};
int run(const Context& context, const RunOptions& options);
// The task file that `run` submits.
[[nodiscard]] Result<std::string> task_text(const RunOptions& options, const std::string& name);

struct PsOptions {
  bool all = false;
  bool services = false;
  bool names = false;
  bool start = false;  // when those who wait are expected to start
  bool json = false;
};
int ps(const Context& context, const PsOptions& options);

struct NamedOptions {
  std::string name;
  bool json = false;
};
int describe(const Context& context, const NamedOptions& options);
int why(const Context& context, const NamedOptions& options);
// Of a pipeline: its stages, with what each waits for.
int describe_pipeline(const Context& context, const NamedOptions& options);
// A table of those that live; nothing when there is none.
void print_pipelines(Terminal& terminal, const Value& listing);

struct LogsOptions {
  std::string name;
  bool follow = false;
  std::int64_t lines = -1;  // the last ones; negative: all
};
int logs(const Context& context, const LogsOptions& options);

struct CancelOptions {
  std::vector<std::string> names;
  bool version = false;  // of services: only the new version that is being loaded
};
int cancel(const Context& context, const CancelOptions& options);

struct ScaleOptions {
  std::string name;
  std::int64_t replicas = -1;  // both bounds
  std::int64_t min = -1;
  std::int64_t max = -1;
};
int scale(const Context& context, const ScaleOptions& options);

struct PauseOptions {
  std::string reason;
};
int pause(const Context& context, const PauseOptions& options);
int resume(const Context& context);

int gpus(const Context& context, const Listing& options);
int usage(const Context& context, const Listing& options);
int teams(const Context& context, const Listing& options);

struct EventsOptions {
  bool follow = false;
  std::int64_t after = -1;  // sequence; negative: what comes when following, else the newest
  std::int64_t limit = 100;
  bool json = false;
};
int events(const Context& context, const EventsOptions& options);

struct SimulateOptions {
  std::string nodes;  // files of the openb trace
  std::string pods;
  std::string order;
  std::int64_t seed = 42;
  std::string policy = "neap";
  std::string ties = "fixed";   // or random
  std::string learn = "given";  // or online
  bool json = false;
};
int simulate_openb(const Context& context, const SimulateOptions& options);

struct MigPlanOptions {
  std::string devices;  // "4xA100-80G", or
  std::string layout;   // a file
  std::string demand;
  bool json = false;
};
int mig_plan(const Context& context, const MigPlanOptions& options);

struct MigProfilesOptions {
  std::string model;
  bool json = false;
};
int mig_profiles(const Context& context, const MigProfilesOptions& options);

struct VersionOptions {
  std::string own;  // of this program
  bool json = false;
};
int version(const Context& context, const VersionOptions& options);

struct Verb {  // for completion
  std::string name;
  std::vector<std::string> options;
  bool takes_task = false;
  bool takes_file = false;
};
int completion(const Context& context, const std::string& shell, const std::vector<Verb>& verbs);

}  // namespace neap::cli
