// A task's standard output and error in files of bounded size. A file is named after the offset,
// in all that the task ever wrote, of its first byte: a reader follows by offset across
// rotations, and knows what was rotated away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/local/fd.h"
#include "core/model/result.h"

namespace neap::local {

struct LogLimits {
  std::int64_t file_bytes = 16 * 1024 * 1024;
  std::int32_t files = 4;  // the newest are kept
  // Space of the disk that logs leave alone: the journal, without which the pool stops, lies
  // there too. Without a value 256 MiB, at most 5 % of the disk.
  std::optional<std::int64_t> keep_free = std::nullopt;
};

class TaskLog {
 public:
  TaskLog(std::string directory, LogLimits limits)
      : directory_(std::move(directory)), limits_(limits) {}

  // Never fails: what a nearly full disk has no room for is counted, and a line in the log says so
  // later.
  void write(std::string_view bytes);
  [[nodiscard]] std::int64_t lost_bytes() const { return lost_bytes_; }

 private:
  [[nodiscard]] bool open_next();
  [[nodiscard]] bool has_room();
  void put(std::string_view bytes);
  void remove_old() const;

  std::string directory_;
  LogLimits limits_;
  Fd file_;
  std::int64_t file_size_ = 0;
  std::int64_t end_ = 0;  // offset of the next byte
  std::int64_t lost_bytes_ = 0;
  std::int64_t lost_told_ = 0;
  std::int64_t unlooked_ = 0;  // bytes that may be written before the disk is looked at again
};

struct LogPart {
  std::int64_t offset = 0;  // of the first byte; above the asked one when that was rotated away
  std::string bytes;
  std::int64_t end = 0;  // of all that is written so far
};

// Empty bytes at the end of the log or when there is no log yet.
[[nodiscard]] Result<LogPart> read_log(const std::string& directory, std::int64_t offset,
                                       std::size_t want);
// The offset at which the last `lines` lines begin, looking back over at most 1 MiB.
[[nodiscard]] Result<std::int64_t> log_tail(const std::string& directory, std::int64_t lines);

}  // namespace neap::local
