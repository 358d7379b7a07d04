// The verbs that load services and show what their requests were, as words of the command line.
#pragma once

#include <functional>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace neap::cli {

// `choose` is called with what the given verb does.
void add_load_verbs(CLI::App& app,
                    const std::function<void(std::function<int(const Context&)>)>& choose);

void add_contention_verbs(CLI::App& app,
                          const std::function<void(std::function<int(const Context&)>)>& choose);

}  // namespace neap::cli
