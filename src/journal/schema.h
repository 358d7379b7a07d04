// The database of a journal: its tables, its version, who may open it.
#pragma once

#include <string>

#include "core/model/result.h"
#include "journal/record.h"
#include "journal/sqlite.h"

namespace neap::journal {

// Of tables and of what records hold: raised with any change of either.
inline constexpr std::int64_t schema_version = 4;

struct Head {
  std::uint64_t sequence = 0;  // 0: no record yet
  Time time;                   // of that record
  ChainHash chain{};           // after that record; `genesis` when there is none
  ChainHash genesis{};         // random: what the first record is chained to
};

// Creates the file (mode 0600) and the tables where they are missing. Errors: a file that is no
// journal of neap; a schema newer than this program reads (conflict); I/O.
[[nodiscard]] Result<Connection> open_for_writing(const std::string& path);
// Usable beside a writer. not_found when there is no such file.
[[nodiscard]] Result<Connection> open_for_reading(const std::string& path);

[[nodiscard]] Result<Head> read_head(Connection& connection);

// An error about one record: "record 17: ...".
[[nodiscard]] tl::unexpected<Error> damaged(const Connection& connection, std::uint64_t sequence,
                                            const std::string& what);
// The chain hash after `sequence`: of the record, else of the sealed segment that ends there,
// else genesis for 0. internal, naming the sequence, when none is there.
[[nodiscard]] Result<ChainHash> chain_after(Connection& connection, std::uint64_t sequence);
// All records up to this one were dropped by retention; 0 when none.
[[nodiscard]] Result<std::uint64_t> dropped_up_to(Connection& connection);

}  // namespace neap::journal
