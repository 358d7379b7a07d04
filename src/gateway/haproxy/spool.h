// The log of requests: what the proxy writes into its pipe, moved into files by the kernel in one
// step (splice), so that no record is ever in the hands of the daemon alone. A daemon that is
// killed between two steps reads on where the files say. The files are the log that people may
// read, of bounded size: the oldest goes first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "gateway/haproxy/records.h"
#include "posix/fd.h"

namespace neap::gateway {

struct SpoolLimits {
  std::uint64_t file_bytes = std::uint64_t{8} << 20;  // then a new one is begun
  std::uint64_t all_bytes = std::uint64_t{64} << 20;  // some 500,000 requests
};

class RecordSpool {
 public:
  using Each = std::function<void(std::uint64_t number, const RequestRecord& record)>;

  // The folder is made with mode 0700. Reading begins with the oldest record that is kept.
  [[nodiscard]] static Result<RecordSpool> open(std::string folder, SpoolLimits limits);

  // Moves what the pipe holds now into the files. An error: they cannot be written; what could
  // not be moved is still in the pipe.
  [[nodiscard]] Result<void> take(int pipe_fd);
  // Calls `each` for every record that was not read yet, with its number: from 0, for ever.
  void read(const Each& each);

  // Records since the log began, as far as they were read.
  [[nodiscard]] std::uint64_t next_number() const { return next_number_; }

 private:
  struct File {
    std::uint64_t first_number = 0;
    std::uint64_t bytes = 0;
  };

  RecordSpool(std::string folder, SpoolLimits limits);
  [[nodiscard]] std::string path_of(std::uint64_t first_number) const;
  [[nodiscard]] Result<void> find_files();
  [[nodiscard]] Result<void> begin_file();
  void drop_oldest();
  void read_file(int fd, const Each& each);

  std::string folder_;
  SpoolLimits limits_;
  std::vector<File> files_;  // the last is written to
  posix::Fd current_;
  std::uint64_t next_number_ = 0;
  std::size_t reading_ = 0;       // index of the file that is read
  std::uint64_t read_bytes_ = 0;  // of it
  LineCutter cutter_;
};

// Which of the records have been handed on in slices, in a file: what was not is handed on by the
// next daemon. Written before the slices are handed on: a crash in that moment loses them rather
// than counts them twice.
struct HandedOn {
  std::uint64_t number = 0;  // of records below this ...
  Time until;                // ... those that ended before this moment
  [[nodiscard]] bool covers(std::uint64_t record, Time ended) const {
    return record < number && ended < until;
  }
};
[[nodiscard]] HandedOn read_handed_on(const std::string& path);
[[nodiscard]] Result<void> write_handed_on(const std::string& path, const HandedOn& handed);

}  // namespace neap::gateway
