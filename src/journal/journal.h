// The daemon's journal: what is appended becomes durable, in order, or the daemon stops.
//
// One thread appends (the loop); a commit thread takes all that is queued into one transaction
// and fsync, then reports up to which sequence all is durable. Actions go out after that report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "journal/record.h"
#include "journal/schema.h"

namespace neap::journal {

struct Options {
  std::string path;
  // Under load a commit waits this long after the last one, so that more share its fsync. After
  // a quiet moment it does not wait at all.
  Micros gather = milliseconds(5);
  // This many waiting records end the gathering.
  std::size_t gather_records = 2'048;
  // A transaction ends after about this many: a long queue is written while more is appended.
  std::size_t commit_records = 8'192;
  // Back-pressure: bounds on what is appended and not durable yet.
  std::size_t max_pending_records = 65'536;
  std::size_t max_pending_bytes = 64u << 20;
};

// All run on the commit thread and must be short.
struct Callbacks {
  std::function<void(std::uint64_t sequence)> on_durable = {};
  std::function<void(std::uint64_t sequence)> on_snapshot = {};  // complete and durable
  // A write failed (disk full, I/O error). Called once; nothing is written any more, and the
  // daemon must stop: what it does from here could not be replayed.
  std::function<void(const Error&)> on_failure = {};
};

struct Statistics {
  std::uint64_t commits = 0;
  std::uint64_t records = 0;
  std::uint64_t largest_commit = 0;  // in records
};

class Journal {
 public:
  // Creates the journal where there is none. conflict: another process writes it (named), or a
  // newer schema. internal: the journal is damaged (with the sequence).
  [[nodiscard]] static Result<Journal> open(Options options, Callbacks callbacks);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  // Makes all that was appended durable first.
  ~Journal();

  // True: the next append will not be refused for room. The loop asks before it takes an event
  // from its inbox, so that nothing is applied that could not be journalled.
  [[nodiscard]] bool has_room() const;
  // Copies the records of one turn of the loop into the queue (the caller may clear and use its
  // batch again): all become durable together. Returns the sequence
  // of the last one. exhausted: no room, nothing was queued. invalid_argument: a time before the
  // last record's (a clock that was set back: use max(now, last_time())). unavailable: failed.
  [[nodiscard]] Result<std::uint64_t> append(const Batch& batch);
  // Queues a snapshot of the state as it is after the last appended record.
  [[nodiscard]] Result<void> snapshot(std::vector<std::byte> blob);
  // Seals all records appended since the last segment, with the balances after them.
  [[nodiscard]] Result<void> seal(std::vector<std::byte> closing_balances);
  // Drops the raw records of sealed segments that ended before `limit` and that the older of
  // two snapshots covers. Their rows with closing balances stay.
  [[nodiscard]] Result<void> drop_raw_before(Time limit);
  // Waits until all that was queued before is durable.
  [[nodiscard]] Result<void> flush();

  // Of the last appended record, durable or not. 0 and Time(0): none.
  [[nodiscard]] std::uint64_t last_sequence() const;
  [[nodiscard]] Time last_time() const;
  [[nodiscard]] std::uint64_t durable_sequence() const;
  // An eventfd that becomes readable when durable_sequence() has grown or the journal failed.
  [[nodiscard]] int durable_fd() const;
  [[nodiscard]] Statistics statistics() const;

 private:
  class Committer;
  explicit Journal(std::unique_ptr<Committer> committer);

  std::unique_ptr<Committer> committer_;
};

}  // namespace neap::journal
