// The daemon's own log, behind a façade: spdlog is heavy to include and lives in log.cpp alone.
#pragma once

#include <string_view>

namespace neap::daemon {

void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

}  // namespace neap::daemon
