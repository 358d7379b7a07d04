// The writing side of a journal, on one thread and without queues: each call is a step inside
// the caller's transaction. `Journal` (journal.h) is what the daemon uses.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "journal/record.h"
#include "journal/schema.h"
#include "journal/segment.h"
#include "journal/sqlite.h"
#include "journal/writer_lock.h"

namespace neap::journal {

inline constexpr std::size_t snapshot_part_bytes = 1u << 20;
inline constexpr int snapshots_kept = 2;

class Store {
 public:
  // Takes the writer's lock, finishes what a crash left half done, and refuses a journal whose
  // end is not what its head and the lock file say (truncated or altered).
  [[nodiscard]] static Result<Store> open(const std::string& path);

  // After the last insert, committed or not.
  [[nodiscard]] const Head& head() const { return head_; }

  [[nodiscard]] Result<void> begin();
  // Durable on return, and the lock file knows it.
  [[nodiscard]] Result<void> commit();

  [[nodiscard]] Result<void> insert(const Batch& batch);
  // Begins a snapshot of the state after the last inserted record; parts follow. Where there is
  // one of that record already, nothing happens.
  void begin_snapshot(std::vector<std::byte> blob);
  [[nodiscard]] bool snapshot_unfinished() const { return !snapshots_.empty(); }
  // Inserts at most one part, so that a large snapshot never holds up records for long. Returns
  // the sequence of a snapshot that is complete with this transaction, else 0.
  [[nodiscard]] Result<std::uint64_t> insert_snapshot_part();
  // Seals all records since the last segment; none since: nothing happens.
  [[nodiscard]] Result<void> seal(Bytes closing);
  // Marks the raw records of sealed segments older than `limit` as dropped, as far as the older
  // of two snapshots covers them: falling back to it must still find what follows.
  [[nodiscard]] Result<void> drop_older_than(Time limit);
  [[nodiscard]] bool dropping_unfinished() const { return dropping_; }
  // Deletes a bounded number of marked records.
  [[nodiscard]] Result<void> delete_dropped();

 private:
  struct Unfinished {
    std::uint64_t sequence = 0;
    Time time;
    ChainHash chain{};
    std::vector<std::byte> blob;
    std::size_t parts = 0;  // already inserted
  };

  Store(WriterLock lock, Connection connection, Head head)
      : lock_(std::move(lock)), connection_(std::move(connection)), head_(head) {}

  [[nodiscard]] Result<void> prepare_statements();
  [[nodiscard]] Result<void> check_end();
  [[nodiscard]] Result<void> finish_after_crash();
  [[nodiscard]] Result<void> complete_snapshot(const Unfinished& snapshot);

  WriterLock lock_;
  Connection connection_;
  Head head_;
  bool head_changed_ = false;
  bool dropping_ = false;
  std::uint64_t last_snapshot_ = 0;  // begun or complete; 0: none
  std::deque<Unfinished> snapshots_;
  std::vector<Statement> statements_;  // by enum in store.cpp
};

}  // namespace neap::journal
