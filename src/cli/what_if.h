// neap simulate: a workload through the pool's own engine under one policy or several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "core/model/result.h"
#include "simulate/run/study.h"

namespace neap::cli {

// As given; empty where nothing was.
struct WhatIfOptions {
  std::string cluster;
  std::vector<std::string> workload;
  std::string format = "auto";
  std::string generate;
  std::int64_t jobs = 2'000;
  std::string load = "80%";
  std::vector<std::string> policies;
  std::string compare;  // A,B
  std::vector<std::string> sets;
  bool baseline = false;  // also without the sets
  std::int64_t seed = 1;
  std::string seeds;  // A-B
  std::string jitter;
  std::string sample;
  std::string until;
  bool no_learning = false;

  std::string tier;
  std::vector<std::string> checkpoint;  // sdk, signals, none
  std::string checkpoint_interval;
  std::string save_time = "10s";
  std::string stall_time = "0s";
  std::string restore_time = "180s";
  bool on_demand = false;
  bool declare_work = false;

  std::string service = "chat";
  std::int32_t replica_gpus = 1;
  std::string replica_rate = "10";
  std::int32_t replicas_min = 1;
  std::int32_t replicas_max = 0;

  bool review = false;  // of the last week of the last run
  bool json = false;
  bool csv = false;
  bool curves = false;
  std::string curves_csv;  // files
  std::string picture;
};

[[nodiscard]] Result<whatif::Study> study_of(const WhatIfOptions& options);
int what_if(const Context& context, const WhatIfOptions& options);

// For people; what_if_text.cpp.
void print_study(Terminal& terminal, const whatif::Study& study,
                 const whatif::StudyOutcome& outcome);

}  // namespace neap::cli
