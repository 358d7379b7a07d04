#include "journal/vfs_probe.h"

#include <unistd.h>
#include <csignal>
#include <new>

#include <sqlite3.h>

#include "core/model/check.h"
#include "journal/crash_points.h"

namespace neap::journal {
namespace {

// SQLite allocates szOsFile bytes and gives them to xOpen; the real file lies behind ours.
struct ProbedFile {
  sqlite3_file base;
  sqlite3_file* real;
};

constexpr int real_offset = (sizeof(ProbedFile) + 15) / 16 * 16;

sqlite3_file* real_of(sqlite3_file* file) { return reinterpret_cast<ProbedFile*>(file)->real; }

sqlite3_vfs* real_vfs = nullptr;
sqlite3_vfs probe_vfs{};
sqlite3_io_methods probe_methods{};

int fault_status(FileOperation operation, FileFault& fault) {
  fault = FileFault::none;
  if (FileFaultHook hook = file_fault_hook.load(std::memory_order_relaxed)) fault = hook(operation);
  if (fault == FileFault::disk_full) return SQLITE_FULL;
  if (fault == FileFault::io_error) {
    return operation == FileOperation::sync ? SQLITE_IOERR_FSYNC : SQLITE_IOERR_WRITE;
  }
  return SQLITE_OK;
}

int probe_close(sqlite3_file* file) {
  const int status = real_of(file)->pMethods->xClose(real_of(file));
  file->pMethods = nullptr;
  return status;
}

int probe_read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  return real_of(file)->pMethods->xRead(real_of(file), to, size, offset);
}

int probe_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  crash_point(CrashPoint::file_write);
  FileFault fault{};
  if (const int status = fault_status(FileOperation::write, fault); status != SQLITE_OK) {
    return status;
  }
  sqlite3_file* real = real_of(file);
  if (fault == FileFault::torn_write_and_kill) {
    real->pMethods->xWrite(real, from, size / 2, offset);
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  file_counters().writes.fetch_add(1, std::memory_order_relaxed);
  file_counters().written_bytes.fetch_add(static_cast<std::uint64_t>(size),
                                          std::memory_order_relaxed);
  return real->pMethods->xWrite(real, from, size, offset);
}

int probe_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

int probe_sync(sqlite3_file* file, int flags) {
  crash_point(CrashPoint::file_sync);
  FileFault fault{};
  if (const int status = fault_status(FileOperation::sync, fault); status != SQLITE_OK) {
    return status;
  }
  file_counters().syncs.fetch_add(1, std::memory_order_relaxed);
  return real_of(file)->pMethods->xSync(real_of(file), flags);
}

int probe_file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

int probe_lock(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xLock(real_of(file), level);
}

int probe_unlock(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

int probe_check_reserved(sqlite3_file* file, int* reserved) {
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

int probe_control(sqlite3_file* file, int operation, void* argument) {
  return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

int probe_sector_size(sqlite3_file* file) {
  return real_of(file)->pMethods->xSectorSize(real_of(file));
}

int probe_characteristics(sqlite3_file* file) {
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

int probe_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}

int probe_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

void probe_shm_barrier(sqlite3_file* file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }

int probe_shm_unmap(sqlite3_file* file, int remove) {
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

int probe_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* probed = reinterpret_cast<ProbedFile*>(file);
  probed->real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + real_offset);
  const int status = real_vfs->xOpen(real_vfs, name, probed->real, flags, out_flags);
  // SQLite calls xClose exactly when pMethods is set, whatever xOpen returned.
  file->pMethods = probed->real->pMethods != nullptr ? &probe_methods : nullptr;
  return status;
}

std::string register_probe() {
  real_vfs = sqlite3_vfs_find(nullptr);
  NEAP_CHECK(real_vfs != nullptr);
  // Version 2 has shared memory (needed by WAL) and no memory-mapped pages, which we do not use.
  probe_methods = {2,
                   probe_close,
                   probe_read,
                   probe_write,
                   probe_truncate,
                   probe_sync,
                   probe_file_size,
                   probe_lock,
                   probe_unlock,
                   probe_check_reserved,
                   probe_control,
                   probe_sector_size,
                   probe_characteristics,
                   probe_shm_map,
                   probe_shm_lock,
                   probe_shm_barrier,
                   probe_shm_unmap,
                   nullptr,
                   nullptr};
  // All but xOpen are the real ones: they use their vfs argument for its name only, which this
  // copy keeps apart, and pAppData, which the copy shares.
  probe_vfs = *real_vfs;
  probe_vfs.zName = "neap-probe";
  probe_vfs.szOsFile = real_offset + real_vfs->szOsFile;
  probe_vfs.xOpen = probe_open;
  probe_vfs.pNext = nullptr;
  NEAP_CHECK(sqlite3_vfs_register(&probe_vfs, 0) == SQLITE_OK);
  return probe_vfs.zName;
}

}  // namespace

FileCounters& file_counters() {
  static FileCounters counters;
  return counters;
}

const std::string& probed_vfs() {
  static const std::string name = register_probe();
  return name;
}

}  // namespace neap::journal
