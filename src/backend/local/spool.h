// Reports that the daemon has not acknowledged yet, in a file of lines. A report is durable
// before anybody is told of it. Positions are counted from the birth of the spool and stay valid
// when acknowledged lines are cut off its front.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/local/fd.h"
#include "backend/local/report.h"
#include "core/model/result.h"

namespace neap::local {

class Spool {
 public:
  [[nodiscard]] static Result<Spool> create(const std::string& directory);

  // Numbers and keeps the report in memory until sync().
  void append(Report report);
  // Makes all appended reports durable. After a failure (a full disk) they stay in memory, in
  // order, and the next sync() tries again.
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] bool dirty() const { return !unsynced_.empty(); }
  [[nodiscard]] std::size_t unsynced_bytes() const { return unsynced_.size(); }

  void acknowledge(std::uint64_t sequence);
  [[nodiscard]] std::uint64_t last_durable() const { return durable_sequence_; }
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] std::int64_t unacknowledged_bytes() const { return end_ - acknowledged_at_; }
  [[nodiscard]] std::int64_t file_bytes() const { return end_ - base_; }

  // The position of the first durable report after `sequence`.
  [[nodiscard]] std::int64_t position_after(std::uint64_t sequence) const;
  // Whole lines (with line feeds) from `position`, about `want` bytes and at least one line if
  // there is one; moves `position` behind them.
  [[nodiscard]] std::string read(std::int64_t& position, std::size_t want) const;

 private:
  Spool(std::string directory, Fd file)
      : directory_(std::move(directory)), file_(std::move(file)) {}
  [[nodiscard]] Result<void> cut_front();

  std::string directory_;
  Fd file_;
  std::string unsynced_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t durable_sequence_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::int64_t base_ = 0;  // position of the first byte of the file
  // Position of the last acknowledged line. It is kept, so that whoever finds the spool knows
  // the newest sequence even when all was acknowledged.
  std::int64_t acknowledged_at_ = 0;
  std::int64_t end_ = 0;  // position behind the last durable line
};

// All whole reports of a spool whose supervisor may be gone; a torn last line is left out.
[[nodiscard]] Result<std::vector<Report>> read_spool(const std::string& directory,
                                                     std::uint64_t after);

}  // namespace neap::local
