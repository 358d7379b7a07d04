// The folder that holds everything the daemon keeps.
#pragma once

#include <string>

#include "core/model/result.h"

namespace neap::daemon {

// Makes the folder, or sees that one that is there can serve: ours, and nobody else's to write.
// One that is there is never changed: it may be somebody's home.
[[nodiscard]] Result<void> prepare_state_dir(const std::string& path);

}  // namespace neap::daemon
