// Stages of adoption and profiles, seen and changed by the daemon.
#pragma once

#include <string>

#include "cli/context.h"
#include "cli/verbs.h"

namespace neap::cli {

struct StageOptions {
  std::string why;
  bool force = false;
  std::string to;  // back: to this stage; empty: one step
  bool json = false;
};
int stage_show(const Context& context, const StageOptions& options);
// Ends with 1 when the check before the next stage is not passed.
int stage_check(const Context& context, const StageOptions& options);
int stage_advance(const Context& context, const StageOptions& options);
int stage_back(const Context& context, const StageOptions& options);

struct ReviewOptions {
  std::string week;  // its first day, such as 2027-11-08; empty: the last seven days
  bool json = false;
};
int review(const Context& context, const ReviewOptions& options);

int profiles(const Context& context, const Listing& options);

}  // namespace neap::cli
