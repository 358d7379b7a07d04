// A model of the shared endpoint belongs to one service: whose requests would they be else?
#pragma once

#include <string>
#include <vector>

#include "config/task_file.h"
#include "core/model/result.h"
#include "core/model/state.h"

namespace neap::daemon {

// The names by which a service is asked for: its own where it names no models.
[[nodiscard]] std::vector<std::string> models_of(const ServiceSpec& service);

// conflict: another service, or one that a pipeline is to deploy, has one of the names; it is
// named.
[[nodiscard]] Result<void> check_models(const PoolState& state, const config::TaskFile& file);

// What a journal of before holds: "model m: services a and b; a has its requests", one a model.
[[nodiscard]] std::vector<std::string> models_claimed_twice(const PoolState& state);

}  // namespace neap::daemon
