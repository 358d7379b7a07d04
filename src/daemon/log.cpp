#include "daemon/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace neap::daemon {

namespace {
spdlog::logger& logger() {
  static const auto instance = [] {
    auto log = spdlog::stderr_color_mt("neap");
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
    log->flush_on(spdlog::level::info);
    return log;
  }();
  return *instance;
}
}  // namespace

void log_info(std::string_view line) { logger().info("{}", line); }
void log_warning(std::string_view line) { logger().warn("{}", line); }
void log_error(std::string_view line) { logger().error("{}", line); }

}  // namespace neap::daemon
