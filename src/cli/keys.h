// `neap keys`: the keys by which requests of teams are told apart.
#pragma once

#include <string>

#include "cli/context.h"

namespace neap::cli {

struct KeysOptions {
  std::string file;  // empty: beside the daemon's socket
  std::string team;
  std::string highest = "high";
  std::string id;
  bool json = false;
};
int keys_create(const Context& context, const KeysOptions& options);
int keys_list(const Context& context, const KeysOptions& options);
int keys_revoke(const Context& context, const KeysOptions& options);

}  // namespace neap::cli
