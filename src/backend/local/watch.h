// Boundaries of a task that knows nothing of the pool: files or directories that match a pattern
// count as a checkpoint once nothing in them has changed for a while and all is on disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/local/fd.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

struct WatchedCheckpoint {
  std::int64_t step = 0;  // the digits at the end of the name; 0 when there are none
  std::string path;       // absolute
  std::int64_t bytes = 0;
  Time written;  // the newest modification time in it
};

enum class WatchPass { settling, final };

class CheckpointWatch {
 public:
  // `pattern` is relative, its components are shell globs, and ".." is refused. What matches now
  // is taken for old. Nothing outside `directory` is ever opened, whatever symbolic links say.
  [[nodiscard]] static Result<CheckpointWatch> open(const std::string& directory,
                                                    const std::string& pattern, Micros settle);

  // `now` is steady time. The final pass takes what is there without waiting: for after the
  // task has ended in good order. Durable checkpoints, oldest first.
  [[nodiscard]] std::vector<WatchedCheckpoint> scan(Time now, WatchPass pass);

 private:
  struct Fingerprint {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t newest_ns = 0;
    std::uint64_t hash = 0;  // of names, sizes, times and inodes
    bool operator==(const Fingerprint&) const = default;
  };
  struct Seen {
    Fingerprint print;
    Time since;
    bool reported = false;
    bool present = true;
  };
  enum class Visit { look, sync };

  CheckpointWatch(Fd directory, std::string path, std::vector<std::string> components,
                  Micros settle)
      : root_(std::move(directory)),
        root_path_(std::move(path)),
        components_(std::move(components)),
        settle_(settle) {}

  void find(const std::string& prefix, std::size_t depth, std::vector<std::string>& out) const;
  [[nodiscard]] bool examine(const std::string& name, Visit visit, Fingerprint& print,
                             int depth_left) const;
  [[nodiscard]] bool examine_directory(int fd, const std::string& name, Visit visit,
                                       Fingerprint& print, int depth_left) const;
  [[nodiscard]] Fd open_inside(const std::string& name, int flags) const;

  Fd root_;
  std::string root_path_;
  std::vector<std::string> components_;
  Micros settle_;
  std::map<std::string, Seen> seen_;
};

}  // namespace neap::local
