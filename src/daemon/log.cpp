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

void log_line(LogLevel level, std::string_view line) {
  switch (level) {
    case LogLevel::info:
      logger().info("{}", line);
      break;
    case LogLevel::warning:
      logger().warn("{}", line);
      break;
    case LogLevel::error:
      logger().error("{}", line);
      break;
  }
}

}  // namespace neap::daemon
