// neap latency: what the requests of a service were.
#pragma once

#include <string>

#include "cli/context.h"

namespace neap::cli {

struct LatencyOptions {
  std::string service;
  bool json = false;
};
int latency(const Context& context, const LatencyOptions& options);
// The lines of a description: the last five minutes, and alarms.
void print_latency_summary(Terminal& terminal, const Value& report);

}  // namespace neap::cli
