// A shim over SQLite's file layer: counts what really reaches the disk (metrics, benchmark) and
// lets tests fail or cut any write.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace neap::journal {

enum class FileOperation : std::uint8_t { write, sync };
enum class FileFault : std::uint8_t {
  none,
  disk_full,
  io_error,
  torn_write_and_kill,  // half of the bytes, then SIGKILL
};

struct FileCounters {
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> written_bytes{0};
  std::atomic<std::uint64_t> syncs{0};
};

using FileFaultHook = FileFault (*)(FileOperation);

// Counters of the whole process, over all files opened through the probe.
[[nodiscard]] FileCounters& file_counters();
inline std::atomic<FileFaultHook> file_fault_hook{nullptr};

// Registers the probe once and returns the name to open connections with.
[[nodiscard]] const std::string& probed_vfs();

}  // namespace neap::journal
