// From the journal to the state it ends in.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/books.h"
#include "journal/record.h"

namespace neap::daemon {

struct Recovered {
  PoolState state;
  Books books;
  std::uint64_t replayed = 0;  // records after the snapshot
  std::uint64_t snapshot_sequence = 0;
};

// first_record: or the oldest snapshot, where retention has dropped the records before it.
enum class ReplayFrom : std::uint8_t { newest_snapshot, first_record };
// Reads beside a writer too. not_found: there is no journal yet.
[[nodiscard]] Result<Recovered> recover(const std::string& journal_path, ReplayFrom from);

[[nodiscard]] Result<Record> decode_record(const journal::RecordView& view);

}  // namespace neap::daemon
