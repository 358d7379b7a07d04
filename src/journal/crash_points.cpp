#include "journal/crash_points.h"

#include <unistd.h>
#include <array>
#include <csignal>

namespace neap::journal {
namespace {

constexpr std::array<std::string_view, crash_point_count> names = {
    "appended",       "taken",           "begun",        "rows_inserted", "before_commit",
    "after_commit",   "after_anchor",    "after_report", "snapshot_part", "snapshot_complete",
    "segment_sealed", "segment_dropped", "file_write",   "file_sync",
};

std::atomic<CrashPoint> armed_point{};
std::atomic<std::uint64_t> passes_left{0};

void count_down(CrashPoint point) {
  if (point != armed_point.load()) return;
  if (passes_left.fetch_sub(1) == 1) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();  // the signal may arrive in another thread first
  }
}

}  // namespace

std::string_view name_of(CrashPoint point) { return names[static_cast<std::size_t>(point)]; }

std::optional<CrashPoint> crash_point_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<CrashPoint>(i);
  }
  return std::nullopt;
}

void kill_at(CrashPoint point, std::uint64_t nth) {
  armed_point = point;
  passes_left = nth;
  crash_hook = &count_down;
}

}  // namespace neap::journal
