// One writer per journal. The lock file also remembers, outside the database, up to which record
// durability was reported: a write-ahead log that lost its tail looks to SQLite like a shorter
// journal, and only this tells the difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/result.h"
#include "journal/record.h"

namespace neap::journal {

struct Anchor {
  std::uint64_t sequence = 0;
  ChainHash chain{};
};

class WriterLock {
 public:
  // Takes <journal path>-lock. conflict: another process holds it; the message names its pid.
  [[nodiscard]] static Result<WriterLock> acquire(const std::string& journal_path);
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&& other) noexcept;
  ~WriterLock();

  // What was reported before this process took the lock; none when never or unreadable.
  [[nodiscard]] const std::optional<Anchor>& anchor() const { return anchor_; }
  // Not fsynced: it must survive the process. After a power cut an older anchor is harmless,
  // and a newer one cannot be, since the records were fsynced before.
  [[nodiscard]] Result<void> write_anchor(const Anchor& anchor);

 private:
  WriterLock(int file, std::string path, std::optional<Anchor> anchor)
      : file_(file), path_(std::move(path)), anchor_(anchor) {}

  int file_ = -1;
  std::string path_;
  std::optional<Anchor> anchor_;
};

}  // namespace neap::journal
