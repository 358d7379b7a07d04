// Reading a journal: beside its writer, in bounded memory, and verifying the chain throughout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "journal/record.h"
#include "journal/schema.h"
#include "journal/segment.h"
#include "journal/sqlite.h"

namespace neap::journal {

struct Snapshot {
  std::uint64_t sequence = 0;  // the state after this record; replay goes on with the next
  Time time;
  std::vector<std::byte> blob;
};

struct LoadedSnapshot {
  std::optional<Snapshot> snapshot;  // none: replay from the first record
  // Why newer ones were passed over; worth a warning.
  std::vector<std::string> rejected;
};

class Reader;

// A place in the journal. It holds no transaction between calls, so a slow consumer does not
// keep the write-ahead log from being recycled. Must not outlive its Reader.
class Cursor {
 public:
  // The next record, or none at the end for now: later calls see what was appended since. The
  // payload is valid until the next call. internal: the journal is damaged at that sequence.
  [[nodiscard]] Result<std::optional<RecordView>> next();
  // The sequence that next() will look at.
  [[nodiscard]] std::uint64_t position() const { return next_; }

 private:
  friend class Reader;
  Cursor(Connection& connection, Statement select, std::uint64_t next, ChainHash before)
      : connection_(&connection), select_(std::move(select)), next_(next), chain_(before) {}

  [[nodiscard]] Result<void> refill();

  struct Row {
    RecordView record;  // its payload is filled in when it is handed out
    std::size_t begin = 0;
    std::size_t end = 0;
    ChainHash chain{};
  };

  Connection* connection_;
  Statement select_;
  std::uint64_t next_;
  ChainHash chain_;  // after record next_ - 1
  std::vector<Row> rows_;
  std::size_t row_ = 0;
  std::vector<std::byte> bytes_;
};

enum class SnapshotAge : std::uint8_t { newest, oldest };

class Reader {
 public:
  [[nodiscard]] static Result<Reader> open(const std::string& path);

  [[nodiscard]] Result<Head> head();
  // The oldest record still held; head + 1 when there is none.
  [[nodiscard]] Result<std::uint64_t> first_sequence();
  // From a record on. not_found: dropped by retention, or beyond the end + 1.
  [[nodiscard]] Result<Cursor> from(std::uint64_t sequence);
  // From the first record at or after a time; at the end when there is none.
  [[nodiscard]] Result<Cursor> from_time(Time time);
  // The last `count` records, then whatever follows.
  [[nodiscard]] Result<Cursor> tail(std::uint64_t count);
  // The newest (or oldest) snapshot whose checksum and chain hold.
  [[nodiscard]] Result<LoadedSnapshot> load_snapshot(SnapshotAge age = SnapshotAge::newest);
  [[nodiscard]] Result<std::vector<Segment>> segments() { return read_segments(connection_); }
  // Reads everything held: the chain, the segments, both snapshots. Returns the records read.
  [[nodiscard]] Result<std::uint64_t> verify();

 private:
  explicit Reader(Connection connection) : connection_(std::move(connection)) {}
  [[nodiscard]] Result<Snapshot> read_snapshot(std::uint64_t sequence);

  Connection connection_;
};

}  // namespace neap::journal
