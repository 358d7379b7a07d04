// `neap engine`: speaks with one engine on this machine, without a daemon.
#pragma once

#include <cstdint>
#include <string>

#include "cli/context.h"

namespace neap::cli {

struct EngineOptions {
  std::string kind;
  std::int32_t port = 0;
  std::string act = "show";
  std::int32_t level = 1;
  std::int32_t slots = 0;
  std::string name;
  std::string path;
  bool json = false;
};
int engine_verb(const Context& context, const EngineOptions& options);

}  // namespace neap::cli
