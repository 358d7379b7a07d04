#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/verbs.h"

namespace neap::cli {

namespace {

constexpr std::int32_t simulated_count = 4;
constexpr std::int32_t preset_devices_min = 4;

std::int32_t driver_devices() {
  std::error_code error;
  std::int32_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/driver/nvidia/gpus", error), end;
       !error && at != end; at.increment(error)) {
    ++count;
  }
  return count;
}

std::string sizes_text(std::int32_t count, const std::string& preset) {
  if (!preset.empty()) {
    return "  # The ratio of inference to training; gives guard, buffer, scaling and preemption:\n"
           "  preset: " +
           preset + "\n";
  }
  const std::string guard = std::to_string(count >= 4 ? count / 4 : 0);
  const std::string buffer = std::to_string(count >= 4 ? 1 : 0);
  return "  # Devices that training never takes:\n"
         "  inference_guard_min: " +
         guard +
         "\n"
         "  # Devices beside the guard, lent to tasks that can yield in time:\n"
         "  elastic_buffer: " +
         buffer + "\n";
}

enum class Found : std::uint8_t { devices, none };

std::string pool_text(std::int32_t count, Found found, const std::string& preset) {
  const std::string total = std::to_string(count);
  std::string text =
      "# The pool: what it has and how it shares. All keys: docs/operators/configuration.md\n"
      "pool:\n"
      "  total_gpus: " +
      total + "\n" + sizes_text(count, preset) +
      "\n"
      "preempt:\n"
      "  enabled: true\n"
      "  # Tasks yield where they have just saved a checkpoint, and only there:\n"
      "  only_at_checkpoint: true\n" +
      (preset.empty() ? "  checkpoint_interval_min: 10\n" : "") +
      "\n"
      "# Heavier tiers go first. The kind says what a tier is for.\n"
      "priority_tiers:\n"
      "  - {name: inference, weight: 100, kind: inference}\n"
      "  - {name: interactive, weight: 80, kind: interactive}\n"
      "  - {name: batch, weight: 40, kind: batch}\n"
      "\n";
  if (found == Found::none) {
    text +=
        "# No GPU was found: the devices are pretended, the processes on them are real.\n"
        "devices:\n"
        "  source: simulated\n"
        "  nodes:\n"
        "    - {name: local, model: A100-80G, count: " +
        total + "}\n";
  } else {
    text += "devices:\n  source: nvml\n";
  }
  return text +
         "\n"
         "# Others than the daemon's own user may use the pool through a group:\n"
         "# api:\n"
         "#   group: gpu\n";
}

}  // namespace

int init(const Context& context, const InitOptions& options) {
  const std::int32_t found = options.gpus > 0 ? 0 : driver_devices();
  const std::int32_t count = options.gpus > 0 ? options.gpus : found > 0 ? found : simulated_count;
  if (!options.preset.empty() && count < preset_devices_min) {
    return context.failed({ErrorCode::invalid_argument,
                           "divides 4 devices at least; there are " + std::to_string(count),
                           "--preset"});
  }
  const std::string text =
      pool_text(count, found == 0 ? Found::none : Found::devices, options.preset);
  // O_EXCL: a file that is there is somebody's.
  const int fd = ::open(options.file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    const bool exists = errno == EEXIST;
    return context.failed({exists ? ErrorCode::conflict : ErrorCode::unavailable,
                           exists ? "is there already and was left as it is"
                                  : std::string("cannot be written: ") + std::strerror(errno),
                           options.file});
  }
  const ssize_t written = ::write(fd, text.data(), text.size());
  const bool kept = written == static_cast<ssize_t>(text.size()) && ::close(fd) == 0;
  if (!kept) return context.failed({ErrorCode::unavailable, "was not written", options.file});
  context.terminal().line("wrote " + options.file + ": " + std::to_string(count) +
                          (found == 0 ? " simulated devices" : " devices"));
  context.terminal().line("next: neap serve " + options.file);
  return 0;
}

}  // namespace neap::cli
