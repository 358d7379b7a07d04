// neap preemptions, neap drill: what was and what is rehearsed.
#pragma once

#include <cstdint>
#include <string>

#include "cli/context.h"

namespace neap::cli {

struct ReportListing {
  bool json = false;
};

struct PreemptionOptions {
  std::string since = "7d";
  bool json = false;
};
int preemptions(const Context& context, const PreemptionOptions& options);

struct DrillOptions {
  std::string service;
  std::int64_t replicas = 0;
  std::string length;
  std::int64_t max_preemptions = 4;
  std::string max_lost = "0s";
  std::string ready_within = "10min";
  std::string resume_within = "10min";
  std::string pause = "2s";
  bool json = false;
};
// 0: every limit was kept.
int drill_burst(const Context& context, const DrillOptions& options);
int drill_show(const Context& context, const ReportListing& options);
int drill_stop(const Context& context);

}  // namespace neap::cli
