// `neap demo`: a pool of simulated devices with real processes on this machine. Two training
// jobs and a service share it; a burst of requests takes devices from training at a checkpoint
// boundary and gives them back. Ends with the figures that show it.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::cli {

enum class Afterwards : std::uint8_t { clean_up, keep_running };
enum class Report : std::uint8_t { text, json };

struct DemoOptions {
  Micros length = seconds(120);  // of the compressed day
  Afterwards afterwards = Afterwards::clean_up;
  Report report = Report::text;
  std::string folder;    // empty: a new one under /tmp
  std::string examples;  // folder of the example programs; empty: where they are usually
  std::string python = "/usr/bin/python3";
  std::uint64_t seed = 1;
};

// From the words after `neap demo`.
[[nodiscard]] Result<DemoOptions> parse_demo_options(const std::vector<std::string>& words);
[[nodiscard]] std::string demo_usage();

// 0: all that the demonstration promises held; 1: something did not, and it is said which; else
// the exit code of an error. Ends what it started, also on Ctrl-C (130).
[[nodiscard]] int run_demo(const DemoOptions& options, Terminal& terminal);

// Both of the above, for the command line.
[[nodiscard]] int demo(const std::vector<std::string>& words, Terminal& terminal);

}  // namespace neap::cli
