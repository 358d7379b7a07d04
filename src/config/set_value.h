// One value of a file's tree, put there after the file was read.
#pragma once

#include <string_view>

#include "config/document.h"
#include "config/problem.h"

namespace neap::config {

// `key` is a path of names and of places in lists, "priority_tiers[1].weight"; sections on the way
// are made where they are missing, items of a list are not. `value` is YAML: a scalar, a list in
// [] or a mapping in {}. All that is set has the line number `line`. False: `problems` has gained
// an entry.
[[nodiscard]] bool set_value(Node& root, std::string_view key, std::string_view value, int line,
                             Problems& problems);

}  // namespace neap::config
