// Named moments of the journal's work at which a test may kill the process. In production the
// hook is null, and a point costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace neap::journal {

enum class CrashPoint : std::uint8_t {
  appended,           // in the caller's thread: queued, nothing written
  taken,              // the commit thread has the batch
  begun,              // transaction open, nothing inserted
  rows_inserted,      // after each statement that inserts records
  before_commit,      // all inserted, head updated
  after_commit,       // durable, and nobody knows
  after_anchor,       // the lock file names the new head
  after_report,       // the callback has run
  snapshot_part,      // one part of a snapshot inserted
  snapshot_complete,  // the snapshot's row inserted, older ones removed, not committed
  segment_sealed,     // the segment's row inserted, not committed
  segment_dropped,    // raw records deleted, not committed
  file_write,         // before each write of SQLite to a file
  file_sync,          // before each fsync of SQLite
};
inline constexpr int crash_point_count = 14;

using CrashHook = void (*)(CrashPoint);
inline std::atomic<CrashHook> crash_hook{nullptr};

inline void crash_point(CrashPoint point) {
  if (CrashHook hook = crash_hook.load(std::memory_order_relaxed)) [[unlikely]]
    hook(point);
}

[[nodiscard]] std::string_view name_of(CrashPoint point);
[[nodiscard]] std::optional<CrashPoint> crash_point_named(std::string_view name);

// Kills the process by SIGKILL the nth time (from 1) that it passes `point`.
void kill_at(CrashPoint point, std::uint64_t nth);

}  // namespace neap::journal
