// The verb that speaks with the engine of a replica, as words of the command line.
#pragma once

#include <functional>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace neap::cli {

// `choose` is called with what the given verb does.
void add_engine_verb(CLI::App& app,
                     const std::function<void(std::function<int(const Context&)>)>& choose);

}  // namespace neap::cli
